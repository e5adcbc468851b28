/* POST /v1/exec/stream: the output as Server-Sent Events while it comes.
 *
 * The response begins when the command has started (before that, errors are plain ones) and ends
 * after exactly one closing event. The reader sets the pace: its watcher holds the command's output
 * back, so nothing is dropped. */
#include <stdlib.h>
#include <uv.h>

#include "api/api.h"
#include "api/cutter.h"
#include "api/handlers.h"
#include "api/starter.h"
#include "api/wire.h"
#include "http/reply.h"
#include "http/request.h"
#include "http/sse.h"

/* How often a client that has shut its sending side is probed with a comment. */
#define PROBE_MS 500

struct stream {
    struct nk_source source;
    struct nk_watcher watcher;
    struct nk_starter starter;
    struct nk_req *req; /* borrowed: NULL once it is over */
    uv_timer_t hold;    /* how long the beginning of a character is held back */
    uv_timer_t beat;    /* comments */
    unsigned users;     /* open handles and a look-up: memory goes when none is left */
    uint64_t held_at;   /* the position that `hold` runs for */
    bool begun;         /* `started` has been written */
    bool flush;         /* what is held has waited long enough */
    bool comment;       /* one is due */
    bool half_closed;   /* the client has shut its sending side */
};

static void leave(struct stream *s)
{
    if (--s->users == 0)
        free(s);
}

static void on_handle_closed(uv_handle_t *handle)
{
    leave(handle->data);
}

static void on_hold_over(uv_timer_t *timer)
{
    struct stream *s = timer->data;

    s->flush = true;
    nk_reply_wake(s->req);
}

static void on_beat(uv_timer_t *timer)
{
    struct stream *s = timer->data;

    s->comment = true;
    nk_reply_wake(s->req);
}

static void hold(struct stream *s, bool held)
{
    if (!held) {
        (void)uv_timer_stop(&s->hold);
        return;
    }
    if (uv_is_active((uv_handle_t *)&s->hold) && s->held_at == s->watcher.pos)
        return;
    s->held_at = s->watcher.pos;
    (void)uv_timer_start(&s->hold, on_hold_over, NK_CUTTER_HOLD_MS, 0);
}

static void write_opening(struct stream *s, struct nk_buf *out)
{
    if (!s->begun)
        nk_wire_sse_started(out, s->watcher.process, s->watcher.pos);
    s->begun = true;
    if (s->comment)
        nk_sse_comment(out, "");
    s->comment = false;
}

/* An event that fits into what the connection wants to have, as long as that is not tiny. */
static size_t event_max(size_t room)
{
    if (room >= NK_CUTTER_MAX)
        return NK_CUTTER_MAX;
    return room < 4096 ? 4096 : room;
}

/* Output until the room is used; what the cutter said last. */
static enum nk_cut write_output(struct stream *s, struct nk_buf *out, size_t room)
{
    struct nk_process *p = s->watcher.process;
    bool ended = p->state == NK_PROC_EXITED;
    size_t before = nk_buf_left(out);
    struct nk_cutter_piece piece;
    enum nk_cut kind = NK_CUT_TEXT;

    for (size_t used = 0; used < room; used = nk_buf_left(out) - before) {
        kind = nk_cutter_next(&p->log, s->watcher.pos, nk_process_stream_end(p),
                              event_max(room - used), s->flush || ended, &piece);
        if (kind != NK_CUT_TEXT && kind != NK_CUT_BYTES)
            return kind;
        nk_wire_sse_output(out, kind, &piece);
        if (out->failed)
            return kind;
        s->flush = false;
        nk_watcher_advance(&s->watcher, piece.to);
    }
    return kind;
}

/* A reader that sets the pace can miss nothing; if it did, it must not look like an end. */
static enum nk_pull write_loss(struct stream *s, struct nk_buf *out)
{
    struct nk_err err;

    (void)nk_fail(&err, NK_GONE, "output was lost before it could be sent");
    err.value = s->watcher.process->log.start;
    nk_wire_sse_error(out, s->watcher.pos, &err);
    if (s->watcher.process->state != NK_PROC_EXITED)
        nk_process_end(s->watcher.process, NK_REASON_CLIENT_GONE);
    return NK_PULL_END;
}

static enum nk_pull on_pull(struct nk_source *source, struct nk_buf *out, size_t room)
{
    struct stream *s = NK_CONTAINER_OF(source, struct stream, source);
    struct nk_process *p = s->watcher.process;
    enum nk_cut kind;

    write_opening(s, out);
    kind = write_output(s, out, room);
    if (kind == NK_CUT_GAP)
        return write_loss(s, out);
    hold(s, kind == NK_CUT_HELD);
    if (kind == NK_CUT_NOTHING && p->state == NK_PROC_EXITED) {
        nk_wire_sse_exit(out, p);
        return out->failed ? NK_PULL_FAIL : NK_PULL_END;
    }
    if (out->failed)
        return NK_PULL_FAIL;
    return kind == NK_CUT_NOTHING || kind == NK_CUT_HELD ? NK_PULL_WAIT : NK_PULL_MORE;
}

/* A client that has shut its sending side has not left yet: only writing tells whether it still
 * reads. On a Unix socket hang-up tells. */
static void start_beat(struct stream *s)
{
    if (s->half_closed && !nk_req_is_local(s->req))
        (void)uv_timer_start(&s->beat, on_beat, 0, PROBE_MS);
    else
        (void)uv_timer_start(&s->beat, on_beat, NK_SSE_KEEPALIVE_MS, NK_SSE_KEEPALIVE_MS);
}

static void begin(struct stream *s)
{
    nk_reply_header(s->req, "Cache-Control", "no-store");
    nk_reply_header(s->req, "X-Accel-Buffering", "no");
    start_beat(s);
    nk_reply_stream(s->req, 200, "text/event-stream", &s->source, -1);
}

static void on_event(struct nk_watcher *w, enum nk_proc_event ev, const struct nk_err *err)
{
    struct stream *s = NK_CONTAINER_OF(w, struct stream, watcher);

    if (ev == NK_PROC_EV_FAILED)
        nk_req_fail(s->req, err);
    else if (ev == NK_PROC_EV_STARTED)
        begin(s);
    else if (ev == NK_PROC_EV_OUTPUT || ev == NK_PROC_EV_EXITED)
        nk_reply_wake(s->req);
}

static void on_looked_up(struct nk_starter *l, const struct nk_err *err)
{
    struct stream *s = NK_CONTAINER_OF(l, struct stream, starter);

    if (!s->req)
        leave(s);
    else if (err)
        nk_req_fail(s->req, err);
}

static void on_half_close(struct nk_req *req, void *ctx)
{
    struct stream *s = ctx;

    (void)req;
    s->half_closed = true;
    start_beat(s);
}

/* A command that has ended leaves its background children alone, whoever goes. */
static void end_command(struct stream *s)
{
    struct nk_process *p = s->watcher.process;

    if (p && p->state != NK_PROC_EXITED)
        nk_process_end(p, NK_REASON_CLIENT_GONE);
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct stream *s = ctx;

    (void)req;
    s->req = NULL;
    if (gone)
        end_command(s);
    nk_watcher_detach(&s->watcher);
    if (!nk_starter_drop(&s->starter))
        s->users++;
    uv_close((uv_handle_t *)&s->hold, on_handle_closed);
    uv_close((uv_handle_t *)&s->beat, on_handle_closed);
}

static void open_timers(struct stream *s, uv_loop_t *loop)
{
    (void)uv_timer_init(loop, &s->hold);
    (void)uv_timer_init(loop, &s->beat);
    s->hold.data = s;
    s->beat.data = s;
    s->users = 2;
}

int nk_api_exec_stream(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    struct stream *s = calloc(1, sizeof *s);

    if (!s)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    s->req = req;
    s->source.pull = on_pull;
    s->watcher.on_event = on_event;
    s->watcher.holds = true;
    s->starter.done = on_looked_up;
    if (nk_starter_run(&s->starter, req, &s->watcher, false, err) < 0) {
        free(s);
        return -1;
    }
    open_timers(s, api->loop);
    nk_req_on_close(req, on_close, s);
    nk_req_on_half_close(req, on_half_close, s);
    return 0;
}
