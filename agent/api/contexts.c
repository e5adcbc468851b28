/* /v1/contexts: made, listed, interrupted, restarted, deleted. What they run is in exec.c, stream.c and
 * exec_ws.c, as other code is. */
#include "code/context_table.h"

#include <stdlib.h>

#include "api/api.h"
#include "api/handlers.h"
#include "api/starter.h"
#include "api/wire.h"
#include "base/json.h"
#include "http/reply.h"
#include "http/request.h"

/* Answers with a context once its interpreter is ready. */
struct context_call {
    struct nk_context_wait wait;
    struct nk_context *context; /* holds a reference while it is awaited */
    struct nk_starter starter;  /* of one that is made */
    struct nk_watcher watcher;  /* of nothing: a context's first process is its own to watch */
    struct nk_req *req;         /* borrowed: NULL once it is over */
    int status;
    bool made; /* by this call, and not told yet */
};

static void write_context(struct nk_json_out *o, const struct nk_context *c)
{
    static const char *const names[] = {
        [NK_CONTEXT_IDLE] = "idle", [NK_CONTEXT_BUSY] = "busy", [NK_CONTEXT_DEAD] = "dead"};
    const struct nk_context_info info = nk_context_info(c);

    nk_json_out_open(o, NULL, '{');
    nk_json_out_str(o, "id", info.id);
    nk_json_out_str(o, "language", info.language);
    nk_json_out_str(o, "name", info.name);
    nk_json_out_str(o, "cwd", info.cwd);
    nk_json_out_str(o, "status", names[info.status]);
    nk_json_out_time(o, "created_at", info.created_wall_ms);
    nk_json_out_close(o, '}');
}

static int reply_context(struct nk_req *req, int status, const struct nk_context *c)
{
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};

    write_context(&o, c);
    nk_wire_reply(req, status, &body);
    return 0;
}

/* Of a request that says nothing but whose it is. */
static struct nk_context *find(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    const char *id = nk_req_param(req, "id");
    struct nk_context *c = nk_context_table_find(api->contexts, nk_req_identity(req), id);

    if (nk_req_json(req) && nk_json_only(nk_req_json(req), NULL, 0, err) < 0)
        return NULL;
    if (!c)
        (void)nk_fail(err, NK_NOT_FOUND, "no context %.80s", id);
    return c;
}

/* One that could not be used is no context. */
static void discard(struct context_call *call)
{
    const struct nk_api *api = call->starter.api;

    call->made = false;
    nk_context_table_delete(api->contexts, call->context);
}

static void on_ready(struct nk_context_wait *w, const struct nk_err *err)
{
    struct context_call *call = NK_CONTAINER_OF(w, struct context_call, wait);

    if (err && call->made)
        discard(call);
    call->made = false;
    if (err)
        nk_req_fail(call->req, err);
    else
        (void)reply_context(call->req, call->status, call->context);
}

static void await(struct context_call *call, struct nk_context *c)
{
    nk_context_ref(c);
    call->context = c;
    call->wait.over = on_ready;
    nk_context_await(c, &call->wait);
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct context_call *call = ctx;

    (void)req;
    call->req = NULL;
    nk_context_unwait(&call->wait);
    if (gone && call->made && !call->starter.survives)
        discard(call);
    if (call->context)
        nk_context_unref(call->context);
    call->context = NULL;
    if (!call->starter.api || nk_starter_drop(&call->starter))
        free(call);
}

static void on_started(struct nk_starter *l, const struct nk_err *err)
{
    struct context_call *call = NK_CONTAINER_OF(l, struct context_call, starter);

    if (!call->req) {
        (void)nk_starter_drop(l);
        free(call);
    } else if (err) {
        nk_req_fail(call->req, err);
    } else {
        call->made = true;
        await(call, l->made);
    }
}

static void on_joined(struct nk_starter *l, struct nk_process *p)
{
    struct context_call *call = NK_CONTAINER_OF(l, struct context_call, starter);
    struct nk_context *c = nk_context_table_find_first(l->api->contexts, p);
    struct nk_err err;

    if (c) {
        await(call, c);
        return;
    }
    (void)nk_fail(&err, NK_GONE, "the context that was made under this key is gone");
    nk_req_fail(call->req, &err);
}

static struct context_call *new_call(struct nk_req *req, int status, struct nk_err *err)
{
    struct context_call *call = calloc(1, sizeof *call);

    if (!call) {
        (void)nk_fail(err, NK_OVERLOADED, "no memory for this request");
        return NULL;
    }
    call->req = req;
    call->status = status;
    return call;
}

int nk_api_context_create(struct nk_req *req, struct nk_err *err)
{
    struct context_call *call = new_call(req, 201, err);

    if (!call)
        return -1;
    call->starter = (struct nk_starter){.kind = NK_EXEC_CONTEXT_NEW,
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

int nk_api_context_list(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    struct nk_context *c = NULL;
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};

    (void)err;
    nk_json_out_open(&o, NULL, '{');
    nk_json_out_open(&o, "contexts", '[');
    while ((c = nk_context_table_next(api->contexts, nk_req_identity(req), c)) != NULL)
        write_context(&o, c);
    nk_json_out_close(&o, ']');
    nk_json_out_close(&o, '}');
    nk_wire_reply(req, 200, &body);
    return 0;
}

int nk_api_context_show(struct nk_req *req, struct nk_err *err)
{
    const struct nk_context *c = find(req, err);

    return c ? reply_context(req, 200, c) : -1;
}

int nk_api_context_delete(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    struct nk_context *c = find(req, err);

    if (!c)
        return -1;
    nk_context_table_delete(api->contexts, c);
    nk_reply_empty(req, 204);
    return 0;
}

int nk_api_context_interrupt(struct nk_req *req, struct nk_err *err)
{
    struct nk_context *c = find(req, err);

    if (!c)
        return -1;
    nk_context_interrupt(c);
    return reply_context(req, 200, c);
}

int nk_api_context_restart(struct nk_req *req, struct nk_err *err)
{
    struct nk_context *c = find(req, err);
    struct context_call *call;

    if (!c)
        return -1;
    call = new_call(req, 200, err);
    if (!call)
        return -1;
    if (nk_context_restart(c, err) < 0) {
        free(call);
        return -1;
    }
    await(call, c);
    nk_req_on_close(req, on_close, call);
    return 0;
}
