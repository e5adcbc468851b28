#include "http/ws_conn.h"

#include <string.h>

#include "http/conn.h"
#include "http/inside.h"
#include "http/ws_accept.h"

static uint64_t now_of(const struct nk_ws_conn *c)
{
    return uv_now(c->timer.loop);
}

static void tell(struct nk_ws_conn *c)
{
    if (c->told)
        return;
    c->told = true;
    c->events->over(c);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void on_timer(uv_timer_t *timer);

/* While we do not read, silence says nothing about the client. */
static void schedule(struct nk_ws_conn *c)
{
    uint64_t now = now_of(c);
    uint64_t due = c->pinged_ms + NK_WS_PING_MS;

    if (!c->paused)
        due = least(due, c->heard_ms + NK_WS_SILENCE_MS);
    if (c->closing || c->breaking)
        due = c->closing_ms + NK_WS_CLOSE_MS;
    (void)uv_timer_start(&c->timer, on_timer, due > now ? due - now : 0, 0);
}

static void begin_closing(struct nk_ws_conn *c)
{
    if (c->closing)
        return;
    c->closing = true;
    if (!c->breaking)
        c->closing_ms = now_of(c);
    schedule(c);
    nk_ws_conn_pause(c, false); /* its close frame may stand behind what was held up */
    nk_reply_wake(c->req);
}

/* The client's close, or what it broke: our frame says the same. */
static void leave(struct nk_ws_conn *c, unsigned code)
{
    c->close_in = true;
    if (!c->closing)
        c->close_code = code;
    begin_closing(c);
    nk_reply_wake(c->req);
    tell(c);
}

/* What was said before it broke is still answered, as far as one piece goes. */
static void break_off(struct nk_ws_conn *c, unsigned code)
{
    if (c->closing) {
        leave(c, code);
        return;
    }
    c->breaking = true;
    c->close_code = code;
    c->closing_ms = now_of(c);
    schedule(c);
    nk_reply_wake(c->req);
}

static bool is_flood(struct nk_ws_conn *c)
{
    uint64_t now = now_of(c);

    if (now - c->rate_ms >= 1000) {
        c->rate_ms = now;
        c->rate = 0;
    }
    return ++c->rate > NK_WS_CONTROL_RATE;
}

/* A client that asks and does not read gets no more answers than fit. */
static void answer_ping(struct nk_ws_conn *c, const struct nk_ws_item *item)
{
    if (nk_buf_left(&c->answers) < NK_WS_ANSWERS_MAX)
        nk_ws_add(&c->answers, NK_WS_PONG, item->data, item->len, NULL);
    nk_reply_wake(c->req);
}

static void take(struct nk_ws_conn *c, const struct nk_ws_item *item)
{
    bool control = item->kind == NK_WS_PING || item->kind == NK_WS_PONG;

    if (item->kind == NK_WS_CLOSE)
        leave(c, item->code);
    else if (item->kind == NK_WS_BROKEN)
        break_off(c, item->code);
    else if (control && is_flood(c))
        break_off(c, NK_WS_POLICY);
    else if (item->kind == NK_WS_PING)
        answer_ping(c, item);
    else if (!control && !c->closing)
        c->events->on_message(c, item->kind, item->data, item->len);
}

static bool listens(const struct nk_ws_conn *c)
{
    return !c->close_in && !c->breaking;
}

/* How many bytes were taken: all, unless the owner paused. */
static size_t feed(struct nk_ws_conn *c, const uint8_t *data, size_t len)
{
    const uint8_t *at = data;
    size_t left = len;
    struct nk_ws_item item;

    while (!c->paused && listens(c) && nk_ws_read(&c->in, &at, &left, &item) != NK_WS_MORE)
        take(c, &item);
    return listens(c) ? len - left : len;
}

static void on_data(struct nk_req *req, const void *data, size_t len)
{
    struct nk_ws_conn *c = nk_req_ctx(req);
    size_t taken;

    c->heard_ms = now_of(c);
    if (len == 0 && !c->close_in) {
        if (!c->close_out && !c->breaking)
            nk_conn_cut(req->conn);
        c->close_in = true;
        nk_reply_wake(req);
        return;
    }
    taken = nk_buf_left(&c->kept) > 0 ? 0 : feed(c, data, len);
    if (taken < len)
        nk_buf_add(&c->kept, (const uint8_t *)data + taken, len - taken);
    if (c->kept.failed)
        nk_conn_cut(req->conn);
}

static void feed_kept(struct nk_ws_conn *c)
{
    size_t taken;

    if (c->paused || nk_buf_left(&c->kept) == 0)
        return;
    taken = feed(c, nk_buf_front(&c->kept), nk_buf_left(&c->kept));
    nk_buf_consume(&c->kept, taken);
    if (nk_buf_left(&c->kept) > 0)
        return;
    nk_buf_fini(&c->kept);
    if (!c->paused)
        nk_req_pause_body(c->req, false);
}

static void on_timer(uv_timer_t *timer)
{
    struct nk_ws_conn *c = timer->data;
    uint64_t now = now_of(c);
    bool late = c->closing || c->breaking ? now - c->closing_ms >= NK_WS_CLOSE_MS
                                          : !c->paused && now - c->heard_ms >= NK_WS_SILENCE_MS;

    if (late) {
        nk_conn_cut(c->req->conn);
        return;
    }
    if (now - c->pinged_ms >= NK_WS_PING_MS) {
        c->pinged_ms = now;
        c->ping_due = true;
        nk_reply_wake(c->req);
    }
    feed_kept(c);
    schedule(c);
}

static void write_control(struct nk_ws_conn *c, struct nk_buf *out)
{
    if (nk_buf_left(&c->answers) > 0)
        nk_buf_add(out, nk_buf_front(&c->answers), nk_buf_left(&c->answers));
    nk_buf_fini(&c->answers);
    if (c->ping_due && !c->close_out)
        nk_ws_add(out, NK_WS_PING, NULL, 0, NULL);
    c->ping_due = false;
}

static enum nk_pull write_closing(struct nk_ws_conn *c, struct nk_buf *out)
{
    if (!c->close_out)
        nk_ws_add_close(out, c->close_code, NULL, NULL);
    c->close_out = true;
    if (out->failed)
        return NK_PULL_FAIL;
    return c->close_in ? NK_PULL_END : NK_PULL_WAIT;
}

static enum nk_pull on_pull(struct nk_source *source, struct nk_buf *out, size_t room)
{
    struct nk_ws_conn *c = NK_CONTAINER_OF(source, struct nk_ws_conn, source);
    enum nk_pull got;

    write_control(c, out);
    if (c->closing)
        return write_closing(c, out);
    got = c->events->pull(c, out, room);
    if (c->breaking && got != NK_PULL_FAIL) {
        leave(c, c->close_code);
        return write_closing(c, out);
    }
    if (got != NK_PULL_END)
        return got;
    if (c->close_code == NK_WS_NO_CODE)
        c->close_code = NK_WS_NORMAL;
    begin_closing(c);
    return write_closing(c, out);
}

/* A WebSocket has no half-close: who shut its side without a close frame has left, also where we
 * are not reading just now. */
static void on_half_close(struct nk_req *req, void *ctx)
{
    (void)ctx;
    nk_conn_cut(req->conn);
}

static void on_closed(uv_handle_t *handle)
{
    struct nk_ws_conn *c = handle->data;

    c->events->released(c);
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct nk_ws_conn *c = ctx;

    (void)req;
    (void)gone;
    tell(c);
    c->req = NULL;
    nk_ws_fini(&c->in);
    nk_buf_fini(&c->kept);
    nk_buf_fini(&c->answers);
    uv_close((uv_handle_t *)&c->timer, on_closed);
}

static void accept_upgrade(struct nk_ws_conn *c, const char *protocol)
{
    const struct nk_upgrade up = {.on_data = on_data, .src = &c->source};
    char accept[NK_WS_ACCEPT_ROOM];

    nk_ws_accept_key(nk_req_header(c->req, "Sec-WebSocket-Key"), accept);
    nk_reply_header(c->req, "Sec-WebSocket-Accept", accept);
    if (protocol && nk_ws_accept_offers(c->req->head, protocol))
        nk_reply_header(c->req, "Sec-WebSocket-Protocol", protocol);
    nk_reply_upgrade(c->req, &up);
}

void nk_ws_conn_open(struct nk_ws_conn *c, struct nk_req *req, uv_loop_t *loop,
                     const char *protocol)
{
    c->req = req;
    c->source.pull = on_pull;
    nk_ws_init(&c->in, true, c->limits.message_max ? &c->limits : NULL);
    (void)uv_timer_init(loop, &c->timer);
    c->timer.data = c;
    c->heard_ms = c->pinged_ms = c->rate_ms = now_of(c);
    nk_req_set_ctx(req, c);
    nk_req_on_close(req, on_close, c);
    nk_req_on_half_close(req, on_half_close, c);
    schedule(c);
    accept_upgrade(c, protocol);
}

void nk_ws_conn_wake(struct nk_ws_conn *c)
{
    if (c->req && !c->told)
        nk_reply_wake(c->req);
}

void nk_ws_conn_pause(struct nk_ws_conn *c, bool pause)
{
    if (!c->req || c->paused == pause)
        return;
    c->paused = pause;
    if (pause) {
        nk_req_pause_body(c->req, true);
        return;
    }
    c->heard_ms = now_of(c);
    if (nk_buf_left(&c->kept) == 0)
        nk_req_pause_body(c->req, false);
    else
        (void)uv_timer_start(&c->timer, on_timer, 0, 0);
}
