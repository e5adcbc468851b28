/* POST /v1/processes: a command that stays; answered when it has started. */
#include <stdlib.h>

#include "api/handlers.h"
#include "api/starter.h"
#include "api/wire.h"
#include "http/request.h"

struct start_call {
    struct nk_watcher watcher;
    struct nk_starter starter;
    struct nk_req *req; /* borrowed: NULL once it is over */
};

static void reply(struct start_call *call)
{
    nk_wire_reply_process(call->req, 201, call->watcher.process);
}

static void on_event(struct nk_watcher *w, enum nk_proc_event ev, const struct nk_err *err)
{
    struct start_call *call = NK_CONTAINER_OF(w, struct start_call, watcher);

    if (ev == NK_PROC_EV_FAILED)
        nk_req_fail(call->req, err);
    if (ev == NK_PROC_EV_STARTED)
        reply(call);
}

static void on_started(struct nk_starter *l, const struct nk_err *err)
{
    struct start_call *call = NK_CONTAINER_OF(l, struct start_call, starter);

    if (!call->req)
        free(call);
    else if (err)
        nk_req_fail(call->req, err);
}

static void on_joined(struct nk_starter *l, struct nk_process *p)
{
    struct start_call *call = NK_CONTAINER_OF(l, struct start_call, starter);

    nk_watcher_attach(&call->watcher, p);
    if (p->state != NK_PROC_STARTING)
        reply(call);
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct start_call *call = ctx;

    (void)req;
    (void)gone; /* a process does not depend on the client that started it */
    call->req = NULL;
    nk_watcher_detach(&call->watcher);
    if (nk_starter_drop(&call->starter))
        free(call);
}

int nk_api_process_start(struct nk_req *req, struct nk_err *err)
{
    struct start_call *call = calloc(1, sizeof *call);

    if (!call)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    call->req = req;
    call->watcher.on_event = on_event;
    call->starter = (struct nk_starter){.kind = NK_EXEC_PROCESS,
                                        .watcher = &call->watcher,
                                        .done = on_started,
                                        .joined = on_joined};
    if (nk_starter_run(&call->starter, req, err) < 0) {
        free(call);
        return -1;
    }
    nk_req_on_close(req, on_close, call);
    return 0;
}
