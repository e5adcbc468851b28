#include <string.h>

#include "api/api.h"
#include "api/handlers.h"
#include "api/wire.h"
#include "code/survey.h"
#include "http/reply.h"
#include "http/request.h"
#include "process/registry.h"

/* 0 is "none" in the options, and null on the wire. */
static void limit(struct nk_json_out *o, const char *key, uint64_t value)
{
    if (value)
        nk_json_out_u64(o, key, value);
    else
        nk_json_out_null(o, key);
}

static void write_limits(struct nk_json_out *o, const struct nk_api_settings *set)
{
    nk_json_out_open(o, "limits", '{');
    limit(o, "timeout_ms", set->timeout_ms);
    limit(o, "max_timeout_ms", set->max_timeout_ms);
    limit(o, "max_commands", set->max_commands);
    limit(o, "max_processes", set->max_processes);
    nk_json_out_u64(o, "max_output", set->max_output);
    nk_json_out_u64(o, "log_bytes", set->log_bytes);
    nk_json_out_u64(o, "log_total", set->log_total);
    limit(o, "max_body", set->max_body);
    limit(o, "max_upload", set->max_upload);
    limit(o, "memory", set->limits.memory);
    limit(o, "nproc", set->limits.nproc);
    limit(o, "nofile", set->limits.nofile_soft);
    limit(o, "fsize", set->limits.fsize);
    nk_json_out_close(o, '}');
}

static void write_isolation(struct nk_json_out *o, const struct nk_kernel *kernel)
{
    nk_json_out_open(o, "isolation", '{');
    for (int m = 0; m < NK_MECH_COUNT; m++) {
        const struct nk_mech_state *state = &kernel->mech[m];

        nk_json_out_open(o, nk_probe_name((enum nk_mech)m), '{');
        nk_json_out_bool(o, "available", state->available);
        nk_json_out_str(o, "reason", state->available ? NULL : state->reason);
        nk_json_out_close(o, '}');
    }
    nk_json_out_close(o, '}');
}

static void write_features(struct nk_json_out *o, const struct nk_api *api)
{
    nk_json_out_open(o, "features", '{');
    nk_json_out_bool(o, "identities", api->tenants && nk_has(api->kernel, NK_MECH_IDENTITIES));
    nk_json_out_bool(o, "network", false); /* whether the agent itself enforces a list */
    nk_json_out_bool(o, "pause", true);
    nk_json_out_bool(o, "contexts", true);
    nk_json_out_close(o, '}');
}

static void write_languages(struct nk_json_out *o, const struct nk_survey *s,
                            const struct nk_runtimes *runtimes)
{
    char needs[160];

    nk_json_out_open(o, "languages", '{');
    for (size_t i = 0; i < nk_survey_languages(s); i++) {
        struct nk_survey_language l = nk_survey_language(s, i);

        nk_json_out_open(o, l.id, '{');
        nk_json_out_bool(o, "available", l.available);
        nk_json_out_str(o, "version", l.version);
        nk_json_out_str(o, "tool", l.tool);
        if (l.available) {
            nk_json_out_null(o, "reason");
        } else {
            (void)nk_runtimes_needs(nk_runtimes_at(runtimes, i), needs + 6, sizeof needs - 6);
            memcpy(needs, "needs ", 6);
            nk_json_out_str(o, "reason", needs);
        }
        nk_json_out_close(o, '}');
    }
    nk_json_out_close(o, '}');
}

static void write_tools(struct nk_json_out *o, const struct nk_survey *s)
{
    nk_json_out_open(o, "tools", '{');
    for (size_t i = 0; i < nk_survey_tools(s); i++) {
        struct nk_survey_tool tool = nk_survey_tool(s, i);

        nk_json_out_open(o, tool.name, '{');
        nk_json_out_bytes(o, "path", tool.path, strlen(tool.path));
        nk_json_out_str(o, "version", tool.version);
        nk_json_out_close(o, '}');
    }
    nk_json_out_close(o, '}');
}

static void on_surveyed(struct nk_survey *s, void *ctx)
{
    struct nk_req *req = ctx;
    const struct nk_api *api = nk_req_app(req);
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};

    nk_json_out_open(&o, NULL, '{');
    nk_json_out_str(&o, "version", NOOK_VERSION);
    nk_json_out_u64(&o, "api", 1);
    write_limits(&o, &api->set);
    write_languages(&o, s, api->runs.runtimes);
    write_tools(&o, s);
    write_isolation(&o, api->kernel);
    write_features(&o, api);
    nk_json_out_close(&o, '}');
    nk_wire_reply(req, 200, &body);
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    (void)req;
    (void)gone;
    nk_survey_drop(ctx);
}

int nk_api_capabilities(struct nk_req *req, struct nk_err *err)
{
    const struct nk_api *api = nk_req_app(req);
    const struct nk_survey_config cfg = {
        .jobs = api->jobs,
        .runtimes = api->runs.runtimes,
        .versions = api->runs.versions,
        .as = api->files_as,
        .search = nk_tools_env(api->set.env, "PATH", NK_TOOLS_SEARCH),
        .asks = api->kernel->complete && !api->ending,
    };
    struct nk_survey *survey = nk_survey_start(&cfg, on_surveyed, req);

    if (!survey)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    nk_req_on_close(req, on_close, survey);
    return 0;
}
