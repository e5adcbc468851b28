#include "http/conn.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/scope.h"
#include "http/deadline.h"
#include "http/exchange.h"
#include "http/intake.h"
#include "http/sender.h"

/* Reads in one event before others get their turn. */
#define READ_ROUNDS 4
/* Events of one connection before others get their turn: many small requests fit into one read. */
#define STEP_ROUNDS 512

static void on_handle_closed(uv_handle_t *handle)
{
    struct nk_conn *c = handle->data;
    struct nk_server *s = c->server;

    if (--c->open_handles > 0)
        return;
    free(c);
    nk_server_release(s);
}

/* A body that ends with the connection must not look whole when it is cut: TCP can tell by a reset. */
static void prepare_cut(const struct nk_conn *c)
{
    static const struct linger at_once = {.l_onoff = 1};

    if (c->req && c->req->out.to_close && !c->req->finished)
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void nk_conn_close(struct nk_conn *c)
{
    if (c->closed)
        return;
    c->closed = true;
    prepare_cut(c);
    if (c->req)
        nk_exchange_end(c, true);
    nk_list_remove(&c->link);
    nk_list_remove(&c->due);
    nk_buf_fini(&c->kept);
    c->in.len = 0;
    /* Out of the poll set first: a child that is being started may hold a copy for a moment. */
    uv_close((uv_handle_t *)&c->poll, on_handle_closed);
    uv_close((uv_handle_t *)&c->timer, on_handle_closed);
    nk_close_fd(&c->fd);
    nk_server_on_conn_closed(c->server);
}

void nk_conn_cut(struct nk_conn *c)
{
    if (c->stepping)
        c->doomed = true;
    else
        nk_conn_close(c);
}

void nk_conn_touch(struct nk_conn *c)
{
    if (c->closed || nk_list_linked(&c->due))
        return;
    nk_list_append(&c->server->due, &c->due);
    if (!c->stepping)
        nk_server_wake(c->server);
}

/* The answer is out. What the client still sends is read and dropped for a while: closing at once
 * would make its kernel forget the answer. */
static void linger(struct nk_conn *c)
{
    c->in.len = 0;
    if (c->eof || shutdown(c->fd, SHUT_WR) < 0) {
        nk_conn_close(c);
        return;
    }
    c->lingering = true;
    c->since_ms = uv_now(c->server->loop);
}

static void shut(struct nk_conn *c, bool rest_unread)
{
    uint8_t byte;

    if (!rest_unread && c->in.len == 0 && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
        nk_conn_close(c);
    else
        linger(c);
}

/* All of the answer is written. False: the body is still to be read, or there was no answer yet. */
static bool complete(struct nk_conn *c)
{
    struct nk_req *req = c->req;
    bool close = req->close_after;
    bool rest_unread = req->fatal || !req->body_over || req->upgrade;

    if (!req->replied)
        return false;
    nk_exchange_finish(req, false);
    if (!close && !req->body_over)
        return false;
    nk_exchange_end(c, false);
    c->since_ms = uv_now(c->server->loop);
    if (close)
        shut(c, rest_unread);
    return true;
}

static bool answer(struct nk_conn *c)
{
    switch (nk_sender_flush(c->req)) {
    case NK_FLUSH_DONE:
        return complete(c);
    case NK_FLUSH_AGAIN:
        nk_conn_touch(c);
        return false;
    case NK_FLUSH_BROKEN:
        nk_conn_close(c);
        return false;
    case NK_FLUSH_WAIT:
    case NK_FLUSH_BLOCKED:
        break;
    }
    return false;
}

static bool tell_half_close(struct nk_conn *c)
{
    struct nk_req *req = c->req;

    if (!(c->half || c->eof) || req->half_told || !req->half_close_fn)
        return false;
    /* After 101 an end is read like the bytes before it, unless these have to wait. */
    if (req->upgrade && !req->paused)
        return false;
    req->half_told = true;
    req->half_close_fn(req, req->half_close_ctx);
    return true;
}

static bool advance(struct nk_conn *c)
{
    enum nk_intake taken;

    if (c->lingering) {
        c->in.len = 0;
        if (c->eof)
            nk_conn_close(c);
        return false;
    }
    taken = nk_intake_step(c);
    if (taken == NK_INTAKE_CLOSE)
        nk_conn_close(c);
    if (taken != NK_INTAKE_NONE || !c->req)
        return taken == NK_INTAKE_MOVED;
    return tell_half_close(c) || answer(c);
}

/* Input that could not be parsed yet moves out of the buffer that all connections share. */
static int keep_input(struct nk_conn *c)
{
    if (c->in.len == 0) {
        nk_buf_fini(&c->kept);
        return 0;
    }
    if (c->kept.data)
        return 0;
    nk_buf_add(&c->kept, c->in.data, c->in.len);
    if (c->kept.failed)
        return -ENOMEM;
    c->in.data = nk_buf_front(&c->kept);
    return 0;
}

/* Changing what is polled for costs two system calls, so UV_READABLE stays until input comes that
 * is not wanted yet. UV_PRIORITIZED keeps a socket polled whose client is half gone: a reset must
 * still wake us. */
static int wanted_mask(const struct nk_conn *c)
{
    bool read = nk_intake_wants(c) || ((c->mask & UV_READABLE) && !c->unwanted && !c->eof);
    int mask = read ? UV_READABLE : 0;

    if (c->req && c->req->out.blocked)
        mask |= UV_WRITABLE;
    return mask | (c->half || c->eof ? UV_PRIORITIZED : UV_DISCONNECT);
}

static void on_event(uv_poll_t *poll, int status, int events);
static void on_timer(uv_timer_t *timer);

static void settle(struct nk_conn *c)
{
    int mask;

    if (c->doomed)
        nk_conn_close(c);
    if (c->closed)
        return;
    if (nk_intake_wants(c))
        c->unwanted = false;
    mask = wanted_mask(c);
    if (keep_input(c) < 0 || (mask != c->mask && uv_poll_start(&c->poll, mask, on_event) < 0)) {
        nk_conn_close(c);
        return;
    }
    c->mask = mask;
    nk_deadline_arm(c, on_timer);
    if (nk_list_linked(&c->due))
        nk_server_wake(c->server);
}

void nk_conn_step(struct nk_conn *c)
{
    bool more = true;

    if (c->stepping || c->closed)
        return;
    c->stepping = true;
    for (int i = 0; more && i < STEP_ROUNDS && !c->closed && !c->doomed; i++) {
        nk_list_remove(&c->due);
        more = advance(c);
    }
    if (more)
        nk_conn_touch(c);
    c->stepping = false;
    settle(c);
}

/* Bytes read; 0: no more now, or never. */
static size_t read_some(struct nk_conn *c)
{
    struct nk_server *s = c->server;
    ssize_t n;

    do
        n = recv(c->fd, s->input, sizeof s->input, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n < 0) {
        nk_conn_close(c);
        return 0;
    }
    c->eof = n == 0;
    if (c->req)
        c->req->dry = false;
    c->in.data = s->input;
    c->in.len = (size_t)n;
    s->stats.bytes_in += (size_t)n;
    return (size_t)n;
}

/* UV_DISCONNECT says that the client sends no more, or that it is gone; only poll tells which. */
static void check_hangup(struct nk_conn *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP | POLLPRI};
    uint8_t byte;

    if (poll(&p, 1, 0) < 0)
        return;
    if (p.revents & (POLLHUP | POLLERR | POLLNVAL)) {
        nk_conn_close(c);
        return;
    }
    /* Urgent data, which nobody here sends, would wake us for ever. */
    if (p.revents & POLLPRI)
        (void)recv(c->fd, &byte, 1, MSG_OOB | MSG_DONTWAIT);
    if (p.revents & POLLRDHUP)
        c->half = true;
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct nk_conn *c = poll->data;
    size_t got = NK_INPUT_SIZE;

    if (events & UV_READABLE && !nk_intake_wants(c))
        c->unwanted = true;
    for (int i = 0; i < READ_ROUNDS && got == NK_INPUT_SIZE; i++) {
        if (!(events & UV_READABLE) || !nk_intake_wants(c))
            break;
        got = nk_intake_lend(c) ? 0 : read_some(c);
        nk_conn_step(c);
    }
    if (!c->closed && (status < 0 || events & (UV_DISCONNECT | UV_PRIORITIZED)))
        check_hangup(c);
    nk_conn_step(c);
}

static void refuse_late(struct nk_conn *c, const char *what)
{
    struct nk_err err;

    nk_fail(&err, NK_TIMEOUT, "%s did not arrive in time", what);
    nk_exchange_refuse(c->req, &err);
    nk_conn_step(c);
}

static void expire(struct nk_conn *c, enum nk_wait wait)
{
    if (wait == NK_WAIT_HEAD && !nk_parser_is_blank(c->req->parser))
        refuse_late(c, "the headers");
    else if (wait == NK_WAIT_BODY && !c->req->replied)
        refuse_late(c, "the body");
    else
        nk_conn_close(c);
}

static void on_timer(uv_timer_t *timer)
{
    struct nk_conn *c = timer->data;
    uint64_t deadline = UINT64_MAX;
    enum nk_wait wait = nk_deadline_of(c, &deadline);

    c->timer_ms = 0;
    if (wait == NK_WAIT_NOTHING)
        return;
    if (uv_now(c->server->loop) < deadline)
        nk_deadline_arm(c, on_timer);
    else
        expire(c, wait);
}

int nk_conn_open(struct nk_server *s, int fd, bool local, bool reserved)
{
    struct nk_conn *c = calloc(1, sizeof *c);
    int rc = c ? uv_poll_init(s->loop, &c->poll, fd) : -ENOMEM;

    if (rc < 0) {
        free(c);
        (void)close(fd);
        return rc;
    }
    (void)uv_timer_init(s->loop, &c->timer);
    c->server = s;
    c->fd = fd;
    c->local = local;
    c->reserved = reserved;
    c->poll.data = c;
    c->timer.data = c;
    c->open_handles = 2;
    c->since_ms = uv_now(s->loop);
    nk_list_append(&s->conns, &c->link);
    nk_server_on_conn_opened(s);
    settle(c);
    return 0;
}
