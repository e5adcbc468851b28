#include "http/sender.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "http/conn.h"
#include "http/sendfile.h"

/* So much is written in one go before other connections get their turn. */
#define FLUSH_BUDGET (1024u * 1024u)
#define TURN_COST 256u
#define GROW_FROM (1024u * 1024u)
#define DIRECT_MIN 16384u /* for less a copy is cheaper */

static const char last_word[] = "HTTP/1.1 503 Service Unavailable\r\n"
                                "Content-Length: 0\r\nConnection: close\r\n\r\n";

static size_t queued(const struct nk_output *out)
{
    return nk_buf_left(&out->head) + nk_buf_left(&out->body);
}

/* Puts the chunk's length into the room left in front of it, right-aligned, and its end behind. */
static void frame_chunk(struct nk_buf *body, bool last)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = nk_buf_left(body) - NK_CHUNK_ROOM;
    uint8_t *at = body->data + body->off + NK_CHUNK_ROOM;
    uint8_t *start = at;

    if (n > 0) {
        *--at = '\n';
        *--at = '\r';
        for (size_t rest = n; rest > 0; rest >>= 4)
            *--at = (uint8_t)digits[rest & 15];
        nk_buf_add(body, "\r\n", 2);
        /* The addition may have moved the bytes; the distance is what counts. */
        body->off += NK_CHUNK_ROOM - (size_t)(start - at);
    } else {
        nk_buf_consume(body, NK_CHUNK_ROOM);
    }
    if (last)
        nk_buf_add(body, "0\r\n\r\n", 5);
}

static bool within_length(struct nk_output *out, size_t n, bool last)
{
    if (out->left < 0)
        return true;
    if ((uint64_t)out->left < n)
        return false;
    out->left -= (int64_t)n;
    return !last || out->left == 0;
}

/* A client that has read much, and takes all at once, gets more at once. What one that does not read
 * holds up stays small: the first bytes fill only the kernel's buffers. */
static void suit_piece(struct nk_output *out, size_t sent, bool all)
{
    size_t piece = out->piece ? out->piece : NK_PIECE_SIZE;

    out->taken += sent;
    if (!all)
        out->piece = NK_PIECE_SIZE;
    else if (sent >= piece && piece < NK_PIECE_MAX && out->taken >= GROW_FROM)
        out->piece = piece * 2;
}

static void add_quoted(struct nk_buf *out, const struct nk_buf *text)
{
    for (size_t i = 0; i < nk_buf_left(text); i++) {
        uint8_t c = nk_buf_front(text)[i];

        if (c == '"' || c == '\\')
            nk_buf_add_char(out, '\\');
        nk_buf_add_char(out, c < ' ' || c == 127 ? '?' : (char)c);
    }
}

/* In place of the piece, which is text. Whoever does not read extensions sees an early end. */
static bool say_why(struct nk_output *out)
{
    struct nk_buf text = out->body;

    if (!out->chunked || text.failed)
        return false;
    nk_buf_consume(&text, NK_CHUNK_ROOM);
    out->body = (struct nk_buf){.max = text.max};
    nk_buf_add_str(&out->body, "1;broken=\"");
    add_quoted(&out->body, &text);
    nk_buf_add_str(&out->body, "\"\r\n");
    nk_buf_fini(&text);
    out->src = NULL;
    out->parting = !out->body.failed;
    return out->parting;
}

/* What the source can send by itself is a chunk of its own, of which only the frame is written. */
static void announce(struct nk_output *out)
{
    size_t n = out->src->ready(out->src);
    char frame[24];

    if (n < DIRECT_MIN)
        return;
    if (!within_length(out, n, false)) {
        out->broken = true;
        return;
    }
    out->direct = n;
    if (out->chunked)
        nk_buf_add(&out->body, frame, (size_t)snprintf(frame, sizeof frame, "%zx\r\n", n));
}

static void end_direct(struct nk_output *out)
{
    if (out->direct == 0 && out->chunked)
        nk_buf_add(&out->body, "\r\n", 2);
    out->broken |= out->body.failed;
}

/* What was announced and cannot be sent that way comes as bytes, into the empty body. */
static void pull_announced(struct nk_output *out)
{
    size_t room = out->direct < NK_PIECE_SIZE ? out->direct : NK_PIECE_SIZE;
    enum nk_pull got = out->src->pull(out->src, &out->body, room);
    size_t n = nk_buf_left(&out->body);

    if (got != NK_PULL_MORE || n == 0 || n > out->direct) {
        out->broken = true;
        return;
    }
    out->direct -= n;
    end_direct(out);
}

/* One piece more into the empty body. */
static void pull(struct nk_output *out)
{
    static const uint8_t room[NK_CHUNK_ROOM];
    size_t reserved = out->chunked ? NK_CHUNK_ROOM : 0;

    nk_buf_add(&out->body, room, reserved);
    out->woken = false;
    enum nk_pull got =
        out->src->pull(out->src, &out->body, out->piece ? out->piece : NK_PIECE_SIZE);
    bool last = got == NK_PULL_END;

    if (got == NK_PULL_BROKEN) {
        out->broken = !say_why(out);
        return;
    }
    if (got == NK_PULL_FAIL || out->body.failed ||
        !within_length(out, nk_buf_left(&out->body) - reserved, last)) {
        out->broken = true;
        return;
    }
    if (out->chunked)
        frame_chunk(&out->body, last);
    if (last)
        out->src = NULL;
    out->waiting = got == NK_PULL_WAIT && !out->woken;
    if (out->body.failed)
        out->broken = true;
}

static ssize_t send_queued(struct nk_req *req)
{
    struct nk_output *out = &req->out;
    struct iovec iov[2];
    struct msghdr msg = {.msg_iov = iov};
    int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (out->file || out->direct > 0 ? MSG_MORE : 0);
    ssize_t n;

    if (nk_buf_left(&out->head) > 0)
        iov[msg.msg_iovlen++] =
            (struct iovec){out->head.data + out->head.off, nk_buf_left(&out->head)};
    if (nk_buf_left(&out->body) > 0)
        iov[msg.msg_iovlen++] =
            (struct iovec){out->body.data + out->body.off, nk_buf_left(&out->body)};
    do
        n = sendmsg(req->conn->fd, &msg, flags);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static void count(struct nk_req *req, size_t n)
{
    req->out.progress_ms = uv_now(req->conn->server->loop);
    req->conn->server->stats.bytes_out += n;
}

static void consume(struct nk_output *out, size_t n)
{
    size_t head = nk_buf_left(&out->head);

    if (n < head) {
        nk_buf_consume(&out->head, n);
        return;
    }
    if (head > 0)
        nk_buf_fini(&out->head);
    nk_buf_consume(&out->body, n - head);
}

/* A whole body goes as soon as it is written; the buffer of a source is used again. */
static void release(struct nk_output *out)
{
    if (!out->src && nk_buf_left(&out->body) == 0)
        nk_buf_fini(&out->body);
}

static enum nk_flush write_some(struct nk_req *req, size_t *budget)
{
    size_t want = queued(&req->out);
    ssize_t n = send_queued(req);

    if (n == -EAGAIN || n == -ENOBUFS)
        return NK_FLUSH_BLOCKED;
    if (n < 0)
        return NK_FLUSH_BROKEN;
    count(req, (size_t)n);
    consume(&req->out, (size_t)n);
    suit_piece(&req->out, (size_t)n, (size_t)n == want);
    *budget -= (size_t)n < *budget ? (size_t)n : *budget;
    /* What a socket took in part it will not take now: the next try would only say so. */
    return (size_t)n < want ? NK_FLUSH_BLOCKED : NK_FLUSH_AGAIN;
}

static enum nk_flush send_file(struct nk_req *req, size_t *budget)
{
    ssize_t n = nk_sendfile_send(req->out.file, req->conn->fd);

    if (n == -EAGAIN)
        return NK_FLUSH_BLOCKED;
    if (n == -EINPROGRESS)
        return NK_FLUSH_WAIT;
    if (n < 0)
        return NK_FLUSH_BROKEN;
    count(req, (size_t)n);
    *budget -= (size_t)n < *budget ? (size_t)n : *budget;
    if (nk_sendfile_left(req->out.file) == 0) {
        nk_sendfile_free(req->out.file);
        req->out.file = NULL;
    }
    return NK_FLUSH_AGAIN;
}

static enum nk_flush send_direct(struct nk_req *req, size_t *budget)
{
    struct nk_output *out = &req->out;
    ssize_t n = out->src->send(out->src, req->conn->fd, out->direct);

    if (n == -EAGAIN)
        return NK_FLUSH_BLOCKED;
    if (n <= 0) {
        pull_announced(out);
        return out->broken ? NK_FLUSH_BROKEN : NK_FLUSH_AGAIN;
    }
    count(req, (size_t)n);
    *budget -= (size_t)n < *budget ? (size_t)n : *budget;
    out->direct -= (size_t)n < out->direct ? (size_t)n : out->direct;
    end_direct(out);
    return NK_FLUSH_AGAIN;
}

static enum nk_flush flush_some(struct nk_req *req, size_t *budget)
{
    struct nk_output *out = &req->out;

    if (out->file && nk_sendfile_waits(out->file))
        return NK_FLUSH_WAIT;
    if (out->file && nk_buf_left(&out->body) == 0 && nk_sendfile_take(out->file, &out->body)) {
        nk_sendfile_free(out->file);
        out->file = NULL;
    }
    if (out->src && out->src->ready && out->direct == 0 && !out->waiting)
        announce(out);
    if (out->src && !out->waiting && out->direct == 0 && nk_buf_left(&out->body) == 0)
        pull(out);
    if (out->broken)
        return NK_FLUSH_BROKEN;
    if (queued(out) > 0)
        return write_some(req, budget);
    if (out->src && out->direct > 0)
        return send_direct(req, budget);
    if (out->src)
        return out->waiting ? NK_FLUSH_WAIT : NK_FLUSH_AGAIN;
    if (out->file)
        return send_file(req, budget);
    return out->parting ? NK_FLUSH_BROKEN : NK_FLUSH_DONE;
}

enum nk_flush nk_sender_flush(struct nk_req *req)
{
    size_t budget = FLUSH_BUDGET;
    enum nk_flush result;
    bool was_blocked = req->out.blocked;

    do {
        result = flush_some(req, &budget);
        release(&req->out);
        /* Even a turn that wrote nothing costs, or a source could keep us here for ever. */
        budget -= budget < TURN_COST ? budget : TURN_COST;
    } while (result == NK_FLUSH_AGAIN && budget > 0);
    req->out.blocked = result == NK_FLUSH_BLOCKED;
    if (req->out.blocked && !was_blocked)
        req->out.progress_ms = uv_now(req->conn->server->loop);
    return result;
}

void nk_sender_last_word(struct nk_req *req)
{
    req->replied = true;
    req->status = 503;
    req->out.src = NULL;
    if (nk_buf_left(&req->out.head) == 0)
        (void)send(req->conn->fd, last_word, sizeof last_word - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    req->out.broken = true;
    nk_conn_touch(req->conn);
}

void nk_sender_fini(struct nk_output *out)
{
    nk_buf_fini(&out->head);
    nk_buf_fini(&out->body);
    nk_sendfile_free(out->file);
    out->file = NULL;
    out->src = NULL;
}
