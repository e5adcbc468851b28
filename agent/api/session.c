#include "api/session.h"

#include <stdlib.h>
#include <string.h>

#include "api/cutter.h"
#include "api/message.h"
#include "api/wire_ws.h"

static void on_handle_closed(struct nk_session *s)
{
    if (--s->handles == 0)
        s->events->released(s);
}

static void on_wait_closed(uv_handle_t *handle)
{
    on_handle_closed(handle->data);
}

static void on_ws_released(struct nk_ws_conn *c)
{
    on_handle_closed(NK_CONTAINER_OF(c, struct nk_session, ws));
}

static void drop_input(struct nk_session *s)
{
    free(s->input.data);
    s->input = (struct nk_json_bytes){0};
}

static void leave(struct nk_session *s)
{
    if (s->left)
        return;
    s->left = true;
    s->events->over(s);
    nk_watcher_detach(&s->watcher);
    drop_input(s);
    uv_close((uv_handle_t *)&s->wait, on_wait_closed);
}

static void on_ws_over(struct nk_ws_conn *c)
{
    leave(NK_CONTAINER_OF(c, struct nk_session, ws));
}

void nk_session_fail(struct nk_session *s, const struct nk_err *err, unsigned code)
{
    if (s->left)
        return;
    s->failed = true;
    s->err = *err;
    s->ws.close_code = code;
    leave(s);
    nk_ws_conn_wake(&s->ws);
}

static void begin(struct nk_session *s)
{
    s->begun = true;
    s->opening_due = true;
    (void)uv_timer_stop(&s->wait);
    nk_ws_conn_pause(&s->ws, false);
    nk_ws_conn_wake(&s->ws);
}

/* A program that reads no more input has not ended for that: the client is told, and goes on. */
static void step_input(struct nk_session *s)
{
    struct nk_process *p = s->watcher.process;
    bool open = nk_stdin_is_open(p);
    struct nk_err err;
    int rc = nk_stdin_push(p, &s->piece, &err);

    s->ack_due |= rc >= 0 && s->piece.offset != NK_STDIN_NEXT;
    if (rc == 0) {
        nk_ws_conn_pause(&s->ws, true);
    } else if (rc < 0 && open && nk_stdin_is_open(p)) {
        nk_session_fail(s, &err, NK_WS_INTERNAL);
        return;
    } else {
        s->refused_due |= rc < 0;
        drop_input(s);
        nk_ws_conn_pause(&s->ws, false);
    }
    nk_ws_conn_wake(&s->ws);
}

static bool input_waits(const struct nk_session *s)
{
    return s->begun && s->input.given;
}

static void take_input(struct nk_session *s, struct nk_json_bytes bytes, uint64_t offset,
                       bool then_close)
{
    s->input = bytes;
    s->input.given = true;
    s->piece = (struct nk_stdin_piece){bytes.data, bytes.len, offset, then_close};
    step_input(s);
}

static void take_bytes(struct nk_session *s, const uint8_t *data, size_t len)
{
    struct nk_json_bytes bytes = {.data = malloc(len > 0 ? len : 1), .len = len};
    struct nk_err err;

    if (!bytes.data) {
        (void)nk_fail(&err, NK_OVERLOADED, "no memory for this message");
        nk_session_fail(s, &err, NK_WS_INTERNAL);
        return;
    }
    memcpy(bytes.data, data, len);
    take_input(s, bytes, NK_STDIN_NEXT, false);
}

static void take_resize(struct nk_session *s, const struct nk_message *m)
{
    struct nk_err err;

    if (nk_process_resize(s->watcher.process, m->cols, m->rows, &err) < 0)
        nk_session_fail(s, &err, NK_WS_INTERNAL);
}

static void take_message(struct nk_session *s, const struct nk_message *m)
{
    struct nk_process *p = s->watcher.process;

    switch (m->type) {
    case NK_MESSAGE_STDIN:
        take_input(s, m->bytes, m->offset, false);
        break;
    case NK_MESSAGE_CLOSE_STDIN:
        if (nk_stdin_is_open(p))
            take_input(s, (struct nk_json_bytes){0}, NK_STDIN_NEXT, true);
        break;
    case NK_MESSAGE_RESIZE:
        take_resize(s, m);
        break;
    case NK_MESSAGE_SIGNAL:
        (void)nk_process_signal_foreground(p, m->signo);
        break;
    case NK_MESSAGE_KILL:
        nk_process_signal(p, m->signo, true);
        break;
    }
}

static void take_first(struct nk_session *s, enum nk_ws_kind kind, const uint8_t *data, size_t len)
{
    struct nk_err err;

    if (kind != NK_WS_TEXT) {
        (void)nk_fail(&err, NK_BAD_REQUEST, "the first message must be a text of type start");
        nk_session_fail(s, &err, NK_WS_POLICY);
        return;
    }
    (void)uv_timer_stop(&s->wait);
    /* What comes behind it waits for the process. */
    nk_ws_conn_pause(&s->ws, true);
    s->events->on_start(s, data, len);
}

static void on_message(struct nk_ws_conn *c, enum nk_ws_kind kind, const uint8_t *data, size_t len)
{
    struct nk_session *s = NK_CONTAINER_OF(c, struct nk_session, ws);
    struct nk_message m;
    struct nk_err err;

    if (s->left)
        return;
    if (!s->begun) {
        take_first(s, kind, data, len);
        return;
    }
    if (kind == NK_WS_TEXT && nk_message_read(data, len, &m, &err) < 0) {
        nk_session_fail(s, &err, NK_WS_INTERNAL);
        return;
    }
    /* An ended command has nothing to be told: its exit is on the way. */
    if (s->watcher.process->state == NK_PROC_EXITED) {
        if (kind == NK_WS_TEXT)
            free(m.bytes.data);
        return;
    }
    if (kind == NK_WS_TEXT)
        take_message(s, &m);
    else
        take_bytes(s, data, len);
}

static void on_event(struct nk_watcher *w, enum nk_proc_event ev, const struct nk_err *err)
{
    struct nk_session *s = NK_CONTAINER_OF(w, struct nk_session, watcher);

    if (ev == NK_PROC_EV_FAILED) {
        nk_session_fail(s, err, NK_WS_INTERNAL);
        return;
    }
    if (ev == NK_PROC_EV_STARTED)
        begin(s);
    if ((ev == NK_PROC_EV_INPUT || ev == NK_PROC_EV_EXITED) && input_waits(s))
        step_input(s);
    if (ev == NK_PROC_EV_OUTPUT || ev == NK_PROC_EV_EXITED)
        nk_ws_conn_wake(&s->ws);
}

static void on_wait_over(uv_timer_t *timer)
{
    struct nk_session *s = timer->data;
    struct nk_err err;

    if (s->begun) {
        s->flush = true;
        nk_ws_conn_wake(&s->ws);
    } else {
        (void)nk_fail(&err, NK_TIMEOUT, "no first message came");
        nk_session_fail(s, &err, NK_WS_POLICY);
    }
}

static void hold(struct nk_session *s, bool held)
{
    if (!held) {
        (void)uv_timer_stop(&s->wait);
        return;
    }
    if (uv_is_active((uv_handle_t *)&s->wait) && s->held_at == s->watcher.pos)
        return;
    s->held_at = s->watcher.pos;
    (void)uv_timer_start(&s->wait, on_wait_over, NK_CUTTER_HOLD_MS, 0);
}

static void write_due(struct nk_session *s, struct nk_buf *out)
{
    if (s->opening_due)
        s->events->write_opening(s, out);
    if (s->ack_due)
        nk_wire_ws_ack(out, nk_stdin_offset(s->watcher.process));
    if (s->refused_due)
        nk_wire_ws_stdin_error(out, NK_CONFLICT);
    s->opening_due = s->ack_due = s->refused_due = false;
}

/* Bytes as they are, without a look at the characters. */
static enum nk_cut next_bytes(const struct nk_session *s, size_t max, struct nk_cutter_piece *out)
{
    const struct nk_process *p = s->watcher.process;
    uint64_t pos = s->watcher.pos;
    uint64_t end = nk_shown_end(&s->shown, p);
    struct nk_outlog_run run;

    if (pos >= end)
        return NK_CUT_NOTHING;
    if (!nk_outlog_at(&p->log, pos, max, &run) || run.missed > 0) {
        out->from = pos;
        out->to = p->log.start < end ? p->log.start : end;
        return out->to > pos ? NK_CUT_GAP : NK_CUT_NOTHING;
    }
    out->stream = run.stream;
    out->data = run.data;
    out->len = run.len < end - run.offset ? run.len : (size_t)(end - run.offset);
    out->from = run.offset;
    out->to = run.offset + out->len;
    return NK_CUT_BYTES;
}

static enum nk_cut next_piece(struct nk_session *s, size_t room, struct nk_cutter_piece *out)
{
    const struct nk_process *p = s->watcher.process;
    size_t max = room >= NK_CUTTER_MAX / 2 ? NK_CUTTER_MAX : room < 4096 ? 4096 : room;

    uint64_t end = nk_shown_end(&s->shown, p);
    bool flush = s->flush || p->state == NK_PROC_EXITED || end < nk_process_stream_end(p);

    if (s->binary)
        return next_bytes(s, max, out);
    return nk_cutter_next(&p->log, s->watcher.pos, end, max, flush, out);
}

static bool write_shown(struct nk_session *s, struct nk_buf *out)
{
    const struct nk_process *p = s->watcher.process;
    const struct nk_display *d = nk_shown_due(&s->shown, p, s->watcher.pos);

    if (!d)
        return false;
    nk_wire_ws_display(out, d);
    nk_shown_told(&s->shown, p);
    return true;
}

/* Output until the room is used; what the cutter said last. */
static enum nk_cut write_output(struct nk_session *s, struct nk_buf *out, size_t room)
{
    size_t before = nk_buf_left(out);
    struct nk_cutter_piece piece;
    enum nk_cut kind = NK_CUT_TEXT;

    for (size_t used = 0; used < room && !out->failed; used = nk_buf_left(out) - before) {
        kind = NK_CUT_TEXT;
        if (write_shown(s, out))
            continue;
        kind = next_piece(s, room - used, &piece);
        if (kind == NK_CUT_NOTHING || kind == NK_CUT_HELD || (kind == NK_CUT_GAP && s->holds))
            return kind;
        if (kind == NK_CUT_GAP)
            nk_wire_ws_gap(out, piece.from, piece.to);
        else if (s->binary)
            nk_wire_ws_bytes(out, &piece);
        else
            nk_wire_ws_output(out, kind, &piece);
        if (out->failed)
            return kind;
        s->flush = false;
        nk_watcher_advance(&s->watcher, piece.to);
    }
    return kind;
}

/* A reader that sets the pace can miss nothing; if it did, it must not look like an end. */
static void fail_loss(struct nk_session *s)
{
    struct nk_err err;

    (void)nk_fail(&err, NK_GONE, "output was lost before it could be sent");
    err.value = s->watcher.process->log.start;
    nk_session_fail(s, &err, NK_WS_INTERNAL);
}

static enum nk_pull write_last(struct nk_session *s, struct nk_buf *out)
{
    if (s->failed)
        nk_wire_ws_error(out, &s->err);
    else
        nk_wire_ws_exit(out, s->watcher.process);
    leave(s); /* a background child is not held up by a closing handshake */
    return out->failed ? NK_PULL_FAIL : NK_PULL_END;
}

static enum nk_pull on_pull(struct nk_ws_conn *c, struct nk_buf *out, size_t room)
{
    struct nk_session *s = NK_CONTAINER_OF(c, struct nk_session, ws);
    enum nk_cut kind;

    if (s->failed)
        return write_last(s, out);
    if (!s->begun)
        return NK_PULL_WAIT;
    write_due(s, out);
    kind = write_output(s, out, room);
    if (kind == NK_CUT_GAP && s->holds) {
        fail_loss(s);
        return write_last(s, out);
    }
    hold(s, kind == NK_CUT_HELD);
    if (kind == NK_CUT_NOTHING && s->watcher.process->state == NK_PROC_EXITED)
        return write_last(s, out);
    if (out->failed)
        return NK_PULL_FAIL;
    return kind == NK_CUT_NOTHING || kind == NK_CUT_HELD ? NK_PULL_WAIT : NK_PULL_MORE;
}

void nk_session_open(struct nk_session *s, struct nk_req *req, uv_loop_t *loop)
{
    static const struct nk_ws_events events = {on_message, on_pull, on_ws_over, on_ws_released};

    s->ws.events = &events;
    s->watcher.on_event = on_event;
    s->watcher.holds = s->holds;
    s->handles = 2;
    (void)uv_timer_init(loop, &s->wait);
    s->wait.data = s;
    nk_ws_conn_open(&s->ws, req, loop, NK_SESSION_PROTOCOL);
    (void)uv_timer_start(&s->wait, on_wait_over, NK_SESSION_START_MS, 0);
}

void nk_session_join(struct nk_session *s, struct nk_process *p, uint64_t pos)
{
    (void)uv_timer_stop(&s->wait);
    s->watcher.pos = pos;
    nk_watcher_attach(&s->watcher, p);
    nk_ws_conn_pause(&s->ws, true); /* nothing comes before the process runs */
    if (p->state != NK_PROC_STARTING)
        begin(s);
}
