/* GET /v1/files/watch: changes as Server-Sent Events. */
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "api/api.h"
#include "api/file_call.h"
#include "api/handlers.h"
#include "base/json_out.h"
#include "files/watch.h"
#include "http/reply.h"
#include "http/request.h"
#include "http/sse.h"

#define BATCH_MAX (64u * 1024u)

struct watch_call {
    struct nk_source source;
    struct nk_watch *watch; /* owned */
    struct nk_req *req;     /* borrowed: NULL once it is over */
    uv_timer_t beat;
    struct nk_buf batch; /* the watch's while it reads */
    bool have;           /* the batch is ours */
    bool begun;          /* `ready` was sent */
    bool comment;        /* one is due */
    bool half_closed;    /* the client has shut its sending side */
    bool ended;
    unsigned users; /* the watch and the timer: memory goes when none is left */
};

static void leave(struct watch_call *call)
{
    if (--call->users > 0)
        return;
    nk_buf_fini(&call->batch);
    free(call);
}

static void on_timer_closed(uv_handle_t *handle)
{
    leave(handle->data);
}

static void on_watch_closed(void *ctx)
{
    leave(ctx);
}

static void add_path(struct nk_json_out *o, const char *key, const char *path)
{
    nk_json_out_bytes(o, key, path, strlen(path));
}

static bool on_event(void *ctx, const struct nk_watch_event *event)
{
    static const char *const names[] = {
        [NK_WATCH_CREATED] = "created",   [NK_WATCH_MODIFIED] = "modified",
        [NK_WATCH_REMOVED] = "removed",   [NK_WATCH_MOVED] = "moved",
        [NK_WATCH_OVERFLOW] = "overflow",
    };
    struct watch_call *call = ctx;
    struct nk_json_out o = {.buf = &call->batch};

    nk_sse_begin(&call->batch, names[event->kind], NK_SSE_NO_ID);
    nk_json_out_open(&o, NULL, '{');
    if (event->kind != NK_WATCH_OVERFLOW) {
        add_path(&o, "path", event->path);
        if (event->to)
            add_path(&o, "to", event->to);
        nk_json_out_str(&o, "type", event->type);
    }
    nk_json_out_close(&o, '}');
    nk_sse_end(&call->batch);
    return nk_buf_left(&call->batch) < BATCH_MAX;
}

static void on_beat(uv_timer_t *timer)
{
    struct watch_call *call = timer->data;

    call->comment = true;
    nk_reply_wake(call->req);
}

/* It may have left: only writing tells. On a Unix socket hang-up tells. */
static void start_beat(struct watch_call *call)
{
    if (call->half_closed && !nk_req_is_local(call->req))
        (void)uv_timer_start(&call->beat, on_beat, 0, NK_SSE_PROBE_MS);
    else
        (void)uv_timer_start(&call->beat, on_beat, NK_SSE_KEEPALIVE_MS, NK_SSE_KEEPALIVE_MS);
}

static void on_half_close(struct nk_req *req, void *ctx)
{
    struct watch_call *call = ctx;

    (void)req;
    call->half_closed = true;
    if (uv_is_active((uv_handle_t *)&call->beat))
        start_beat(call);
}

static void on_ready(void *ctx, const struct nk_err *err)
{
    struct watch_call *call = ctx;

    if (err) {
        nk_req_fail(call->req, err);
        return;
    }
    start_beat(call);
    nk_reply_header(call->req, "Cache-Control", "no-store");
    nk_reply_header(call->req, "X-Accel-Buffering", "no");
    nk_reply_stream(call->req, 200, "text/event-stream", &call->source, -1);
}

static void on_batch(void *ctx, bool ended)
{
    struct watch_call *call = ctx;

    call->have = true;
    call->ended = ended;
    nk_reply_wake(call->req);
}

static enum nk_pull on_pull(struct nk_source *source, struct nk_buf *out, size_t room)
{
    struct watch_call *call = NK_CONTAINER_OF(source, struct watch_call, source);

    (void)room;
    if (!call->begun) {
        nk_sse_begin(out, "ready", NK_SSE_NO_ID);
        nk_buf_add_str(out, "{}");
        nk_sse_end(out);
    }
    call->begun = true;
    if (call->comment)
        nk_sse_comment(out, "");
    call->comment = false;
    if (!call->have)
        return out->failed ? NK_PULL_FAIL : NK_PULL_WAIT;
    nk_buf_add(out, nk_buf_front(&call->batch), nk_buf_left(&call->batch));
    if (out->failed || call->batch.failed)
        return NK_PULL_FAIL;
    nk_buf_consume(&call->batch, nk_buf_left(&call->batch));
    call->have = false;
    if (call->ended)
        return NK_PULL_END;
    nk_watch_resume(call->watch);
    return NK_PULL_WAIT;
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct watch_call *call = ctx;

    (void)req;
    (void)gone;
    call->req = NULL;
    nk_watch_close(&call->watch);
    uv_close((uv_handle_t *)&call->beat, on_timer_closed);
}

static int open_watch(struct watch_call *call, struct nk_req *req, struct nk_err *err)
{
    static const struct nk_watch_events events = {.on_event = on_event,
                                                  .on_ready = on_ready,
                                                  .on_batch = on_batch,
                                                  .on_closed = on_watch_closed};
    struct nk_api *api = nk_req_app(req);
    struct nk_file_scope scope = nk_file_call_scope(req);
    struct nk_watch_config cfg = {.loop = api->loop,
                                  .jobs = scope.jobs,
                                  .as = scope.as,
                                  .share = scope.share,
                                  .roots = scope.roots,
                                  .events = &events,
                                  .ctx = call};

    if (nk_file_call_path(req, "path", ".", &cfg.path, &cfg.path_len, err) < 0 ||
        nk_req_query_bool(req, "recursive", &cfg.recursive, err) < 0)
        return -1;
    return nk_watch_open(&cfg, &call->watch, err);
}

int nk_api_file_watch(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    struct watch_call *call = calloc(1, sizeof *call);

    if (!call)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    call->req = req;
    call->source.pull = on_pull;
    if (open_watch(call, req, err) < 0) {
        free(call);
        return -1;
    }
    (void)uv_timer_init(api->loop, &call->beat);
    call->beat.data = call;
    call->users = 2;
    nk_req_on_close(req, on_close, call);
    nk_req_on_half_close(req, on_half_close, call);
    return 0;
}
