#include "http/reply.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "http/conn.h"
#include "http/inside.h"
#include "http/reply_head.h"
#include "http/sender.h"
#include "http/sendfile.h"

/* What a source may put on top of the room it was given. */
#define PIECE_MAX (NK_PIECE_MAX + 512u * 1024u + 64u)

static bool begin(struct nk_req *req, int status)
{
    /* The request was answered by another: its body came too slowly, or was too large. */
    if (req->replied)
        return false;
    req->replied = true;
    req->status = status;
    nk_conn_touch(req->conn);
    return true;
}

void nk_reply_header(struct nk_req *req, const char *name, const char *value)
{
    assert(!strpbrk(value, "\r\n"));
    /* Rather no answer than one that says what another wrote. */
    if (strpbrk(value, "\r\n"))
        req->extra.failed = true;
    nk_buf_add_str(&req->extra, name);
    nk_buf_add(&req->extra, ": ", 2);
    nk_buf_add_str(&req->extra, value);
    nk_buf_add(&req->extra, "\r\n", 2);
}

void nk_reply_lines(struct nk_req *req, const struct nk_buf *lines)
{
    nk_buf_add(&req->extra, nk_buf_front(lines), nk_buf_left(lines));
    req->extra.failed |= lines->failed;
}

void nk_reply_interim(struct nk_req *req, int status, const struct nk_buf *lines)
{
    /* One that cannot be kept is left out: nothing depends on it. */
    if (req->replied || req->head->http10 || lines->failed)
        return;
    nk_reply_head_interim(&req->out.head, status, lines);
    nk_conn_touch(req->conn);
}

void nk_reply_empty(struct nk_req *req, int status)
{
    nk_reply_bytes(req, status, NULL, NULL, 0);
}

void nk_reply_bytes(struct nk_req *req, int status, const char *type, const void *data, size_t len)
{
    if (!begin(req, status))
        return;
    nk_reply_head_write(req, type, (int64_t)len, len);
    if (len > 0 && nk_reply_head_has_body(req))
        nk_buf_add(&req->out.head, data, len);
    if (req->out.head.failed)
        nk_sender_last_word(req);
}

/* Without memory for the answer there may still be some for a problem, which is small. */
static void answer_overloaded(struct nk_req *req)
{
    struct nk_err err;

    nk_fail(&err, NK_OVERLOADED, "out of memory");
    if (req->in_problem)
        nk_sender_last_word(req);
    else
        nk_req_fail(req, &err);
}

void nk_reply_take(struct nk_req *req, int status, const char *type, struct nk_buf *body)
{
    if (body->failed) {
        nk_buf_fini(body);
        answer_overloaded(req);
        return;
    }
    if (!begin(req, status)) {
        nk_buf_fini(body);
        return;
    }
    nk_reply_head_write(req, type, (int64_t)nk_buf_left(body), 0);
    if (req->out.head.failed) {
        nk_buf_fini(body);
        nk_sender_last_word(req);
        return;
    }
    if (nk_reply_head_has_body(req)) {
        req->out.body = *body;
        *body = (struct nk_buf){.max = body->max};
    }
    nk_buf_fini(body);
}

void nk_reply_stream(struct nk_req *req, int status, const char *type, struct nk_source *src,
                     int64_t length)
{
    if (!begin(req, status))
        return;
    nk_reply_head_write(req, type, length, 0);
    if (req->out.head.failed) {
        nk_sender_last_word(req);
        return;
    }
    if (!nk_reply_head_has_body(req))
        return;
    req->out.chunked = length < 0 && !req->head->http10;
    req->out.to_close = length < 0 && req->head->http10;
    req->out.left = length;
    req->out.body.max = PIECE_MAX;
    req->out.src = src;
}

void nk_reply_wake(struct nk_req *req)
{
    req->out.waiting = false;
    req->out.woken = true;
    nk_conn_touch(req->conn);
}

void nk_reply_file(struct nk_req *req, int status, const char *type, int fd, uint64_t offset,
                   uint64_t len)
{
    if (!begin(req, status)) {
        (void)close(fd);
        return;
    }
    nk_reply_head_write(req, type, (int64_t)len, 0);
    if (!nk_reply_head_has_body(req) || len == 0) {
        (void)close(fd);
    } else {
        req->out.file = nk_sendfile_new(req->conn->server->cfg.jobs, req, fd, offset, len);
        req->out.head.failed |= !req->out.file;
    }
    if (req->out.head.failed)
        nk_sender_last_word(req);
}

void nk_reply_upgrade(struct nk_req *req, const struct nk_upgrade *up)
{
    if (!begin(req, 101))
        return;
    nk_reply_head_write(req, NULL, -1, 0);
    req->upgrade_copy = *up;
    req->upgrade = &req->upgrade_copy;
    req->out.left = -1;
    req->out.body.max = PIECE_MAX;
    req->out.src = up->src;
    req->close_after = true;
    if (req->out.head.failed)
        nk_sender_last_word(req);
}
