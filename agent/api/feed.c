#include "api/feed.h"

#include "api/cutter.h"
#include "api/wire.h"
#include "http/sse.h"

static void on_handle_closed(uv_handle_t *handle)
{
    struct nk_feed *f = handle->data;

    if (--f->handles == 0)
        f->released(f);
}

static void on_hold_over(uv_timer_t *timer)
{
    struct nk_feed *f = timer->data;

    f->flush = true;
    nk_reply_wake(f->req);
}

static void on_beat(uv_timer_t *timer)
{
    struct nk_feed *f = timer->data;

    f->comment = true;
    nk_reply_wake(f->req);
}

static void hold(struct nk_feed *f, bool held)
{
    if (!held) {
        (void)uv_timer_stop(&f->hold);
        return;
    }
    if (uv_is_active((uv_handle_t *)&f->hold) && f->held_at == f->watcher.pos)
        return;
    f->held_at = f->watcher.pos;
    (void)uv_timer_start(&f->hold, on_hold_over, NK_CUTTER_HOLD_MS, 0);
}

static void write_opening(struct nk_feed *f, struct nk_buf *out)
{
    if (f->opening)
        nk_wire_sse_started(out, f->watcher.process, f->watcher.pos);
    f->opening = false;
    if (f->comment)
        nk_sse_comment(out, "");
    f->comment = false;
}

/* An event that about fits into what the connection wants to have: what little is then left of a
 * read would cost as much as a whole one. */
static size_t event_max(size_t room)
{
    if (room >= NK_CUTTER_MAX / 2)
        return NK_CUTTER_MAX;
    return room < 4096 ? 4096 : room;
}

/* The next piece of output, which ends where something is shown. */
static enum nk_cut next_piece(struct nk_feed *f, size_t room, struct nk_cutter_piece *out)
{
    struct nk_process *p = f->watcher.process;
    uint64_t end = nk_shown_end(&f->shown, p);
    bool flush = f->flush || p->state == NK_PROC_EXITED || end < nk_process_stream_end(p);

    return nk_cutter_next(&p->log, f->watcher.pos, end, event_max(room), flush, out);
}

static bool write_shown(struct nk_feed *f, struct nk_buf *out)
{
    struct nk_process *p = f->watcher.process;
    const struct nk_display *d = nk_shown_due(&f->shown, p, f->watcher.pos);

    if (!d)
        return false;
    nk_wire_sse_display(out, d);
    nk_shown_told(&f->shown, p);
    return true;
}

/* Output until the room is used; what the cutter said last. */
static enum nk_cut write_output(struct nk_feed *f, struct nk_buf *out, size_t room)
{
    size_t before = nk_buf_left(out);
    struct nk_cutter_piece piece;
    enum nk_cut kind = NK_CUT_TEXT;

    for (size_t used = 0; used < room && !out->failed; used = nk_buf_left(out) - before) {
        kind = NK_CUT_TEXT;
        if (write_shown(f, out))
            continue;
        kind = next_piece(f, room - used, &piece);
        if (kind == NK_CUT_NOTHING || kind == NK_CUT_HELD || (kind == NK_CUT_GAP && f->holds))
            return kind;
        if (kind == NK_CUT_GAP)
            nk_wire_sse_gap(out, piece.from, piece.to);
        else
            nk_wire_sse_output(out, kind, &piece);
        if (out->failed)
            return kind;
        f->flush = false;
        nk_watcher_advance(&f->watcher, piece.to);
    }
    return kind;
}

/* A reader that sets the pace can miss nothing; if it did, it must not look like an end. */
static enum nk_pull write_loss(struct nk_feed *f, struct nk_buf *out)
{
    struct nk_err err;

    (void)nk_fail(&err, NK_GONE, "output was lost before it could be sent");
    err.value = f->watcher.process->log.start;
    nk_wire_sse_error(out, f->watcher.pos, &err);
    f->lost = true;
    return NK_PULL_END;
}

static enum nk_pull write_closing(struct nk_feed *f, struct nk_buf *out)
{
    if (f->write_closing)
        f->write_closing(f, out);
    else
        nk_wire_sse_exit(out, f->watcher.process);
    return out->failed ? NK_PULL_FAIL : NK_PULL_END;
}

static enum nk_pull on_pull(struct nk_source *source, struct nk_buf *out, size_t room)
{
    struct nk_feed *f = NK_CONTAINER_OF(source, struct nk_feed, source);
    struct nk_process *p = f->watcher.process;
    enum nk_cut kind;

    write_opening(f, out);
    kind = write_output(f, out, room);
    if (kind == NK_CUT_GAP && f->holds)
        return write_loss(f, out);
    hold(f, kind == NK_CUT_HELD);
    if (kind == NK_CUT_NOTHING && p->state == NK_PROC_EXITED)
        return write_closing(f, out);
    if (out->failed)
        return NK_PULL_FAIL;
    return kind == NK_CUT_NOTHING || kind == NK_CUT_HELD ? NK_PULL_WAIT : NK_PULL_MORE;
}

/* A client that has shut its sending side has not left yet: only writing tells whether it still
 * reads. On a Unix socket hang-up tells. */
static void start_beat(struct nk_feed *f)
{
    if (f->half_closed && !nk_req_is_local(f->req))
        (void)uv_timer_start(&f->beat, on_beat, 0, NK_SSE_PROBE_MS);
    else
        (void)uv_timer_start(&f->beat, on_beat, NK_SSE_KEEPALIVE_MS, NK_SSE_KEEPALIVE_MS);
}

static void begin(struct nk_feed *f)
{
    nk_reply_header(f->req, "Cache-Control", "no-store");
    nk_reply_header(f->req, "X-Accel-Buffering", "no");
    start_beat(f);
    nk_reply_stream(f->req, 200, "text/event-stream", &f->source, -1);
}

static void on_event(struct nk_watcher *w, enum nk_proc_event ev, const struct nk_err *err)
{
    struct nk_feed *f = NK_CONTAINER_OF(w, struct nk_feed, watcher);

    if (ev == NK_PROC_EV_FAILED)
        nk_req_fail(f->req, err);
    else if (ev == NK_PROC_EV_STARTED)
        begin(f);
    else if (ev == NK_PROC_EV_OUTPUT || ev == NK_PROC_EV_EXITED)
        nk_reply_wake(f->req);
}

static void on_half_close(struct nk_req *req, void *ctx)
{
    struct nk_feed *f = ctx;

    (void)req;
    f->half_closed = true;
    start_beat(f);
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct nk_feed *f = ctx;

    (void)req;
    f->req = NULL;
    if (f->over)
        f->over(f, gone || f->lost);
    nk_watcher_detach(&f->watcher);
    uv_close((uv_handle_t *)&f->hold, on_handle_closed);
    uv_close((uv_handle_t *)&f->beat, on_handle_closed);
}

void nk_feed_open(struct nk_feed *f, struct nk_req *req, uv_loop_t *loop)
{
    f->req = req;
    f->source.pull = on_pull;
    f->watcher.on_event = on_event;
    f->watcher.holds = f->holds;
    (void)uv_timer_init(loop, &f->hold);
    (void)uv_timer_init(loop, &f->beat);
    f->hold.data = f;
    f->beat.data = f;
    f->handles = 2;
    nk_req_on_close(req, on_close, f);
    nk_req_on_half_close(req, on_half_close, f);
}

struct nk_watcher *nk_feed_watcher(struct nk_feed *f)
{
    return &f->watcher;
}

void nk_feed_join(struct nk_feed *f, struct nk_process *p, uint64_t pos)
{
    f->watcher.pos = pos;
    nk_watcher_attach(&f->watcher, p);
    if (p->state != NK_PROC_STARTING)
        begin(f);
}
