/* POST /v1/processes/{id}/stdin: more input, with a position, so that a cut one can be resumed.
 *
 * Input is taken as far as the queue has room; where the program does not read, the answer waits for
 * it, at most STALL_MS. Bytes that were taken stay taken: the error tells nothing is lost, and the
 * client sends on from the offset that a GET shows. */
#include <stdlib.h>

#include "api/api.h"
#include "api/handlers.h"
#include "api/read.h"
#include "api/wire.h"
#include "base/json.h"
#include "http/request.h"
#include "process/process.h"
#include "process/stdin.h"

#define STALL_MS 30000

struct input_call {
    struct nk_watcher watcher;
    uv_timer_t stall;
    struct nk_req *req; /* borrowed: NULL once it is over */
    struct nk_json_bytes bytes;
    struct nk_stdin_piece piece; /* what is left of it */
};

static void reply(struct input_call *call)
{
    struct nk_process *p = call->watcher.process;
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};

    nk_json_out_open(&o, NULL, '{');
    nk_json_out_u64(&o, "offset", nk_stdin_offset(p));
    nk_json_out_bool(&o, "closed", !nk_stdin_is_open(p));
    nk_json_out_close(&o, '}');
    nk_wire_reply(call->req, 200, &body);
}

static void on_stall(uv_timer_t *timer);

static void step(struct input_call *call)
{
    struct nk_err err;
    int rc = nk_stdin_push(call->watcher.process, &call->piece, &err);

    if (rc < 0)
        nk_req_fail(call->req, &err);
    else if (rc > 0)
        reply(call);
    else
        (void)uv_timer_start(&call->stall, on_stall, STALL_MS, 0);
}

static void on_stall(uv_timer_t *timer)
{
    struct input_call *call = timer->data;
    struct nk_err err;

    (void)nk_fail(&err, NK_TIMEOUT, "the program did not read its input; offset %llu was taken",
                  (unsigned long long)nk_stdin_offset(call->watcher.process));
    nk_req_fail(call->req, &err);
}

static void on_event(struct nk_watcher *w, enum nk_proc_event ev, const struct nk_err *err)
{
    struct input_call *call = NK_CONTAINER_OF(w, struct input_call, watcher);

    (void)err;
    if (call->req && uv_is_active((uv_handle_t *)&call->stall) &&
        (ev == NK_PROC_EV_INPUT || ev == NK_PROC_EV_EXITED))
        step(call);
}

static void on_closed(uv_handle_t *handle)
{
    struct input_call *call = handle->data;

    free(call->bytes.data);
    free(call);
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct input_call *call = ctx;

    (void)req;
    (void)gone;
    call->req = NULL;
    nk_watcher_detach(&call->watcher);
    uv_close((uv_handle_t *)&call->stall, on_closed);
}

static int read_body(const struct nk_json *body, struct input_call *call, struct nk_err *err)
{
    static const char *const fields[] = {"text", "base64", "offset", "close"};

    call->piece.offset = NK_STDIN_NEXT;
    if (nk_json_only(body, fields, NK_COUNT(fields), err) < 0 ||
        nk_json_read_u64(body, "offset", 0, UINT64_MAX - 1, &call->piece.offset, err) < 0 ||
        nk_json_read_bool(body, "close", &call->piece.close, err) < 0 ||
        nk_json_read_either(body, "text", "base64", &call->bytes, err) < 0)
        return -1;
    call->piece.data = call->bytes.data;
    call->piece.len = call->bytes.len;
    if (call->bytes.given || call->piece.close)
        return 0;
    return nk_fail(err, NK_BAD_REQUEST, "text or base64 is missing");
}

int nk_api_process_stdin(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    struct nk_process *p = nk_read_process(req, err);
    struct input_call *call;
    int rc;

    if (!p)
        return -1;
    call = calloc(1, sizeof *call);
    if (!call)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    if (read_body(nk_req_json(req), call, err) < 0) {
        free(call->bytes.data);
        free(call);
        return -1;
    }
    call->req = req;
    call->watcher.on_event = on_event;
    nk_watcher_attach(&call->watcher, p);
    (void)uv_timer_init(api->loop, &call->stall);
    call->stall.data = call;
    nk_req_on_close(req, on_close, call);
    rc = nk_stdin_push(p, &call->piece, err);
    if (rc < 0)
        return -1;
    if (rc > 0)
        reply(call);
    else
        (void)uv_timer_start(&call->stall, on_stall, STALL_MS, 0);
    return 0;
}
