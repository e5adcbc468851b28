/* PATCH /v1/sandbox: read, put into the control group what that can hold, and only then applied. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/handlers.h"
#include "api/sandbox_patch.h"
#include "base/job.h"
#include "http/request.h"
#include "process/cgroups.h"

struct patch_call {
    struct nk_list link;
    struct nk_job job;
    struct nk_sandbox_patch *patch;  /* owned */
    const struct nk_cgroups *groups; /* borrowed: outlives the api */
    struct nk_api *api;
    struct nk_req *req; /* borrowed; NULL: the client has left */
    uint64_t memory, processes;
    uint64_t memory_before;
    int rc;
    bool begun, over;
};

static void free_call(struct patch_call *call)
{
    nk_list_remove(&call->link);
    nk_sandbox_patch_free(call->patch);
    free(call);
}

/* Both or none: a limit below what is in use is not every kernel's to set. */
static void work(struct nk_job *job)
{
    struct patch_call *call = NK_CONTAINER_OF(job, struct patch_call, job);

    call->rc = nk_cgroups_limit_memory(call->groups, call->memory);
    if (call->rc == -ENOTSUP)
        call->rc = 0;
    if (call->rc < 0)
        return;
    call->rc = nk_cgroups_limit_processes(call->groups, call->processes);
    if (call->rc == -ENOTSUP)
        call->rc = 0;
    if (call->rc < 0)
        (void)nk_cgroups_limit_memory(call->groups, call->memory_before);
}

static void refuse(struct patch_call *call)
{
    struct nk_err err;

    (void)nk_fail(&err, call->rc == -EBUSY ? NK_CONFLICT : NK_NOT_SUPPORTED,
                  "limits cannot be set: %s", strerror(-call->rc));
    nk_req_fail(call->req, &err);
}

static void begin_next(struct nk_api *api);

static void on_done(struct nk_job *job, bool canceled)
{
    struct patch_call *call = NK_CONTAINER_OF(job, struct patch_call, job);
    struct nk_cgroups *groups = call->api->groups;

    call->over = true;
    nk_list_remove(&call->link);
    if (canceled || !call->api->lifetime) /* the services are closed already */
        call->rc = -ECANCELED;
    if (call->rc == 0) {
        nk_sandbox_patch_apply(call->api, call->patch);
        call->api->sandbox.memory = groups->memory >= 0 ? call->memory : 0;
        groups->memory_limited = call->memory != 0;
        groups->pids_limited = call->processes != 0;
    }
    begin_next(call->api);
    if (!call->req)
        free_call(call);
    else if (call->rc == 0)
        nk_sandbox_reply(call->req, 200);
    else
        refuse(call);
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct patch_call *call = ctx;

    (void)req;
    (void)gone;
    call->req = NULL;
    if (call->over || !call->begun)
        free_call(call);
}

/* What the group holds for all commands together is not also a limit of each: address space that is
 * only reserved would count. */
static void take_limits(struct patch_call *call, struct nk_limits *limits)
{
    const struct nk_limits *option = &call->api->sandbox.limits_option;

    if (limits->nproc != option->nproc)
        call->processes = limits->nproc;
    if (call->groups->memory < 0)
        return;
    if (limits->memory != option->memory)
        call->memory = limits->memory;
    limits->memory = option->memory;
}

/* One after the other: each goes on from what the one before has left. */
static void begin_next(struct nk_api *api)
{
    struct patch_call *call;

    if (nk_list_empty(&api->sandbox.changes))
        return;
    call = nk_list_entry(api->sandbox.changes.next, struct patch_call, link);
    if (call->begun)
        return;
    call->begun = true;
    call->memory_before = api->sandbox.memory;
    take_limits(call, nk_sandbox_patch_limits(api, call->patch));
    call->job = (struct nk_job){.work = work, .done = on_done};
    nk_job_submit(api->jobs, &call->job);
}

static int call_later(struct nk_req *req, struct nk_sandbox_patch *patch, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    struct patch_call *call = calloc(1, sizeof *call);

    if (!call) {
        nk_sandbox_patch_free(patch);
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    }
    *call = (struct patch_call){.patch = patch, .groups = api->groups, .api = api, .req = req};
    nk_list_append(&api->sandbox.changes, &call->link);
    nk_req_on_close(req, on_close, call);
    begin_next(api);
    return 0;
}

int nk_api_sandbox_patch(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    struct nk_sandbox_patch *patch;

    if (nk_sandbox_patch_new(api, nk_req_json(req), &patch, err) < 0)
        return -1;
    if (nk_sandbox_patch_limits(api, patch) && nk_cgroups_are_open(api->groups))
        return call_later(req, patch, err);
    nk_sandbox_patch_apply(api, patch);
    nk_sandbox_patch_free(patch);
    nk_sandbox_reply(req, 200);
    return 0;
}
