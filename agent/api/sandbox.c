#include "api/sandbox.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/handlers.h"
#include "api/sandbox_patch.h"
#include "api/wire.h"
#include "base/clock.h"
#include "base/job.h"
#include "base/json.h"
#include "http/reply.h"
#include "http/request.h"
#include "lifetime/lifetime.h"
#include "process/registry.h"

int nk_sandbox_init(struct nk_sandbox *s, const struct nk_api *api, const char *network,
                    bool outside)
{
    s->env_option = api->set.env;
    s->limits_option = api->set.limits;
    s->network_outside = outside;
    nk_list_init(&s->changes);
    if (!network || strcmp(network, "all") == 0)
        return 0;
    s->network = nk_sandbox_network_json(network);
    return s->network ? 0 : -1;
}

void nk_sandbox_fini(struct nk_sandbox *s)
{
    free(s->runtime);
    free(s->metadata);
    free(s->env);
    free(s->network);
    nk_arena_fini(&s->env_memory);
    *s = (struct nk_sandbox){0};
}

static void write_json(struct nk_json_out *o, const char *key, const char *text,
                       const char *fallback)
{
    const char *json = text ? text : fallback;

    nk_json_out_raw(o, key, json, strlen(json));
}

static void write_limit(struct nk_json_out *o, const char *key, uint64_t v)
{
    if (v)
        nk_json_out_u64(o, key, v);
    else
        nk_json_out_null(o, key);
}

static void write_limits(struct nk_json_out *o, const struct nk_api *api)
{
    const struct nk_limits *limits = &api->set.limits;

    nk_json_out_open(o, "limits", '{');
    write_limit(o, "memory", api->sandbox.memory ? api->sandbox.memory : limits->memory);
    write_limit(o, "processes", limits->nproc);
    write_limit(o, "fsize", limits->fsize);
    nk_json_out_null(o, "disk");
    nk_json_out_close(o, '}');
}

static void write_network(struct nk_json_out *o, const struct nk_sandbox *s)
{
    bool limited = s->network != NULL;

    nk_json_out_open(o, "network", '{');
    write_json(o, "allow", s->network, "\"all\"");
    nk_json_out_str(o, "enforced_by", limited && s->network_outside ? "outside" : "none");
    nk_json_out_close(o, '}');
}

static void write_counts(struct nk_json_out *o, const struct nk_api *api)
{
    const struct nk_registry_stats *stats = nk_registry_stats(api->processes);

    nk_json_out_open(o, "counts", '{');
    nk_json_out_u64(o, "running", stats->running);
    nk_json_out_u64(o, "ended", stats->ended);
    nk_json_out_u64(o, "started", stats->started);
    nk_json_out_close(o, '}');
}

static void write_sandbox(struct nk_json_out *o, const struct nk_api *api)
{
    uint64_t idle_ms = nk_lifetime_idle_ms(api->lifetime);

    nk_json_out_str(o, "id", api->set.id);
    nk_json_out_str(o, "status", nk_registry_is_paused(api->processes) ? "paused" : "active");
    nk_json_out_str(o, "runtime", api->sandbox.runtime);
    nk_json_out_time(o, "created_at", api->created_wall_ms);
    nk_json_out_time(o, "expires_at", nk_lifetime_expires_at(api->lifetime));
    if (idle_ms)
        nk_json_out_real(o, "idle_timeout", (double)idle_ms / 1000);
    else
        nk_json_out_null(o, "idle_timeout");
    nk_json_out_time(o, "idle_at", nk_lifetime_idle_at(api->lifetime));
    write_json(o, "metadata", api->sandbox.metadata, "{}");
    write_json(o, "env", api->sandbox.env, "{}");
    write_limits(o, api);
    write_network(o, &api->sandbox);
    write_counts(o, api);
}

void nk_sandbox_reply(struct nk_req *req, int status)
{
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};

    nk_json_out_open(&o, NULL, '{');
    write_sandbox(&o, nk_req_app(req));
    nk_json_out_close(&o, '}');
    nk_wire_reply(req, status, &body);
}

int nk_api_sandbox_show(struct nk_req *req, struct nk_err *err)
{
    (void)err;
    nk_sandbox_reply(req, 200);
    return 0;
}

/* The answer comes first: the end begins once it is on its way. */
int nk_api_sandbox_delete(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);

    (void)err;
    nk_sandbox_reply(req, 202);
    api->on_end(api->on_end_ctx);
    return 0;
}

int nk_api_sandbox_keepalive(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);

    if (nk_json_only(nk_req_json(req), NULL, 0, err) < 0)
        return -1;
    nk_lifetime_touch(api->lifetime);
    nk_sandbox_reply(req, 200);
    return 0;
}

int nk_api_sandbox_token(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);

    if (nk_sandbox_token(api, nk_req_json(req), err) < 0)
        return -1;
    nk_reply_empty(req, 204);
    return 0;
}

struct pause_call {
    struct nk_pause pause;
    struct nk_req *req; /* borrowed: NULL once it is over */
    bool to;            /* pause, or resume */
    bool told;
};

static void on_paused(struct nk_pause *pause, int rc)
{
    struct pause_call *call = NK_CONTAINER_OF(pause, struct pause_call, pause);
    struct nk_api *api = nk_req_app(call->req);
    struct nk_err err;

    call->told = true;
    nk_lifetime_set_paused(api->lifetime, nk_registry_is_paused(api->processes));
    if (rc == 0) {
        nk_sandbox_reply(call->req, 200);
        return;
    }
    (void)nk_fail_sys(&err, -rc, "not every process could be reached");
    nk_req_fail(call->req, &err);
}

static void on_pause_close(struct nk_req *req, void *ctx, bool gone)
{
    struct pause_call *call = ctx;
    struct nk_api *api = nk_req_app(req);

    (void)gone;
    nk_registry_unpause_wait(api->processes, &call->pause);
    if (!call->told && api->lifetime)
        nk_lifetime_set_paused(api->lifetime, call->to);
    free(call);
}

static int pause_or_resume(struct nk_req *req, bool pause, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    struct pause_call *call;

    if (nk_json_only(nk_req_json(req), NULL, 0, err) < 0)
        return -1;
    if (nk_registry_is_paused(api->processes) == pause && !nk_registry_is_pausing(api->processes)) {
        nk_sandbox_reply(req, 200);
        return 0;
    }
    call = calloc(1, sizeof *call);
    if (!call)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    call->req = req;
    call->to = pause;
    call->pause.done = on_paused;
    if (nk_registry_pause(api->processes, pause, &call->pause, err) < 0) {
        free(call);
        return -1;
    }
    nk_lifetime_set_paused(api->lifetime, true);
    nk_req_on_close(req, on_pause_close, call);
    return 0;
}

int nk_api_sandbox_pause(struct nk_req *req, struct nk_err *err)
{
    return pause_or_resume(req, true, err);
}

int nk_api_sandbox_resume(struct nk_req *req, struct nk_err *err)
{
    return pause_or_resume(req, false, err);
}

struct usage_call {
    struct nk_job job;
    struct nk_usage usage;
    struct nk_api *api; /* borrowed: outlives every request */
    struct nk_req *req; /* borrowed: NULL once it is over */
    bool done;
};

static void usage_work(struct nk_job *job)
{
    struct usage_call *call = NK_CONTAINER_OF(job, struct usage_call, job);

    nk_usage_read("", call->api->set.working_dir, &call->usage);
}

/* Of one processor, since the usage was asked before (at first: since some beginning, so 0). */
static double cpu_used(const struct nk_usage *before, const struct nk_usage *now)
{
    if (before->at_ns == 0 || now->at_ns <= before->at_ns || now->cpu_ns < before->cpu_ns)
        return 0;
    return 100.0 * (double)(now->cpu_ns - before->cpu_ns) / (double)(now->at_ns - before->at_ns);
}

static void reply_usage(struct usage_call *call)
{
    const struct nk_usage *u = &call->usage;
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};

    nk_json_out_open(&o, NULL, '{');
    nk_json_out_u64(&o, "cpu_count", u->cpu_count);
    nk_json_out_real(&o, "cpu_used_pct", cpu_used(&call->api->sandbox.last, u));
    nk_json_out_u64(&o, "mem_used", u->mem_used);
    nk_json_out_u64(&o, "mem_total", u->mem_total);
    nk_json_out_u64(&o, "disk_used", u->disk_used);
    nk_json_out_u64(&o, "disk_total", u->disk_total);
    nk_json_out_u64(&o, "processes", u->processes);
    nk_json_out_time(&o, "time", nk_clock_wall_ms());
    nk_json_out_close(&o, '}');
    call->api->sandbox.last = *u;
    nk_wire_reply(call->req, 200, &body);
}

static void usage_done(struct nk_job *job, bool canceled)
{
    struct usage_call *call = NK_CONTAINER_OF(job, struct usage_call, job);

    (void)canceled;
    call->done = true;
    if (call->req)
        reply_usage(call);
    else
        free(call);
}

static void on_usage_close(struct nk_req *req, void *ctx, bool gone)
{
    struct usage_call *call = ctx;

    (void)req;
    (void)gone;
    call->req = NULL;
    if (call->done)
        free(call);
}

int nk_api_sandbox_usage(struct nk_req *req, struct nk_err *err)
{
    struct usage_call *call = calloc(1, sizeof *call);

    if (!call)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    call->api = nk_req_app(req);
    call->req = req;
    call->job = (struct nk_job){.work = usage_work, .done = usage_done};
    nk_req_on_close(req, on_usage_close, call);
    nk_job_submit(call->api->jobs, &call->job);
    return 0;
}
