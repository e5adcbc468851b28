/* POST /v1/exec, /v1/code and /v1/contexts/ID/code: one answer, when the command is over. */
#include <stdlib.h>

#include "api/attachments.h"
#include "api/handlers.h"
#include "api/starter.h"
#include "api/wire.h"
#include "http/reply.h"
#include "http/request.h"

struct exec_call {
    struct nk_watcher watcher;
    struct nk_starter starter;
    struct nk_attachments attachments;
    struct nk_req *req; /* borrowed: NULL once it is over */
};

static void reply(struct exec_call *call)
{
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};

    nk_json_out_open(&o, NULL, '{');
    if (call->starter.kind == NK_EXEC_CODE || call->starter.kind == NK_EXEC_CONTEXT)
        nk_wire_code_result(&o, call->watcher.process, NK_WIRE_OUTPUT | NK_WIRE_IMAGES);
    else
        nk_wire_result(&o, call->watcher.process, true);
    nk_json_out_close(&o, '}');
    nk_wire_reply(call->req, 200, &body);
}

static void on_event(struct nk_watcher *w, enum nk_proc_event ev, const struct nk_err *err)
{
    struct exec_call *call = NK_CONTAINER_OF(w, struct exec_call, watcher);

    if (ev == NK_PROC_EV_FAILED)
        nk_req_fail(call->req, err);
    if (ev == NK_PROC_EV_EXITED)
        reply(call);
}

static void on_started(struct nk_starter *l, const struct nk_err *err)
{
    struct exec_call *call = NK_CONTAINER_OF(l, struct exec_call, starter);

    if (!call->req)
        free(call);
    else if (err)
        nk_req_fail(call->req, err);
    else
        nk_attachments_started(&call->attachments);
}

static void on_joined(struct nk_starter *l, struct nk_process *p)
{
    struct exec_call *call = NK_CONTAINER_OF(l, struct exec_call, starter);

    nk_watcher_attach(&call->watcher, p);
    if (p->state == NK_PROC_EXITED)
        reply(call);
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct exec_call *call = ctx;

    (void)req;
    call->req = NULL;
    if (gone)
        nk_starter_gone(&call->starter);
    nk_attachments_fini(&call->attachments);
    nk_watcher_detach(&call->watcher);
    if (nk_starter_drop(&call->starter))
        free(call);
}

static int run(struct nk_req *req, enum nk_exec_kind kind, struct nk_err *err)
{
    struct exec_call *call = calloc(1, sizeof *call);
    int rc;

    if (!call)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    call->req = req;
    call->watcher.on_event = on_event;
    call->starter = (struct nk_starter){.kind = kind,
                                        .capture = true,
                                        .watcher = &call->watcher,
                                        .done = on_started,
                                        .joined = on_joined};
    if (nk_req_json(req))
        rc = nk_starter_run(&call->starter, req, err);
    else
        rc = nk_attachments_begin(&call->attachments, &call->starter, req, err);
    if (rc < 0) {
        free(call);
        return -1;
    }
    nk_req_on_close(req, on_close, call);
    return 0;
}

int nk_api_exec(struct nk_req *req, struct nk_err *err)
{
    return run(req, NK_EXEC_WHOLE, err);
}

int nk_api_code(struct nk_req *req, struct nk_err *err)
{
    return run(req, NK_EXEC_CODE, err);
}

int nk_api_context_code(struct nk_req *req, struct nk_err *err)
{
    return run(req, NK_EXEC_CONTEXT, err);
}
