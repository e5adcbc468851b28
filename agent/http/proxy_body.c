#include <errno.h>

#include "base/attr.h"
#include "http/conn.h"
#include "http/inside.h"
#include "http/proxy_private.h"

static void shut_when_told(struct nk_proxy *p)
{
    if (p->ended && !p->shut && nk_buf_left(&p->out) == 0) {
        p->shut = true;
        nk_upstream_shut(p->upstream);
    }
}

/* The server has closed its ears, not necessarily its mouth: what it has said is still read. */
static void become_deaf(struct nk_proxy *p)
{
    p->deaf = true;
    nk_buf_fini(&p->out);
    nk_req_pause_body(p->req, false);
}

void nk_proxy_body_flush(struct nk_proxy *p)
{
    if (!p->open || p->deaf)
        return;
    while (nk_buf_left(&p->out) > 0) {
        const struct iovec iov = {p->out.data + p->out.off, nk_buf_left(&p->out)};
        ssize_t n = nk_upstream_write(p->upstream, &iov, 1);

        if (n == -EAGAIN)
            return;
        if (n < 0) {
            become_deaf(p);
            return;
        }
        p->moved_ms = nk_proxy_now(p);
        nk_buf_consume(&p->out, (size_t)n);
    }
    nk_buf_fini(&p->out);
    nk_req_pause_body(p->req, false);
    shut_when_told(p);
}

/* Straight to the server as far as it takes it; the rest waits, and its sender with it. */
static int push(struct nk_proxy *p, const struct iovec *iov, size_t count)
{
    size_t skip = 0;

    if (p->deaf)
        return 0;
    if (p->open && nk_buf_left(&p->out) == 0) {
        ssize_t n = nk_upstream_write(p->upstream, iov, count);

        if (n < 0 && n != -EAGAIN)
            p->deaf = true;
        if (n > 0)
            p->moved_ms = nk_proxy_now(p);
        skip = n > 0 ? (size_t)n : 0;
    }
    for (size_t i = 0; i < count && !p->deaf; i++) {
        size_t done = skip < iov[i].iov_len ? skip : iov[i].iov_len;

        nk_buf_add(&p->out, (const uint8_t *)iov[i].iov_base + done, iov[i].iov_len - done);
        skip -= done;
    }
    if (nk_buf_left(&p->out) > 0) {
        nk_req_pause_body(p->req, true);
        nk_proxy_body_flush(
            p); /* what took a part is asked again, so that it tells when it takes more */
    }
    /* An answer that has begun cannot become another one. */
    if (p->out.failed && p->answered)
        nk_conn_cut(p->req->conn);
    return p->out.failed ? -ENOMEM : 0;
}

static struct iovec piece(const void *data, size_t len)
{
    return (struct iovec){(void *)(uintptr_t)data, len};
}

static int on_body(struct nk_req *req, const void *data, size_t len, struct nk_err *err)
{
    struct nk_proxy *p = nk_req_ctx(req);
    struct nk_buf size = {0};
    int rc;

    if (!req->head->chunked) {
        const struct iovec plain = piece(data, len);

        return push(p, &plain, 1) < 0 ? nk_proxy_no_memory(err) : 0;
    }
    nk_buf_add_fmt(&size, "%zx\r\n", len);
    if (size.failed)
        return nk_proxy_no_memory(err);
    const struct iovec framed[] = {piece(nk_buf_front(&size), nk_buf_left(&size)), piece(data, len),
                                   piece("\r\n", 2)};

    rc = push(p, framed, NK_COUNT(framed));
    nk_buf_fini(&size);
    return rc < 0 ? nk_proxy_no_memory(err) : 0;
}

static int on_body_end(struct nk_req *req, struct nk_err *err)
{
    const struct iovec last = piece("0\r\n\r\n", 5);

    if (req->head->chunked && push(nk_req_ctx(req), &last, 1) < 0)
        return nk_proxy_no_memory(err);
    return 0;
}

const struct nk_body_sink nk_proxy_body_sink = {.on_data = on_body, .on_end = on_body_end};

void nk_proxy_body_on_data(struct nk_req *req, const void *data, size_t len)
{
    struct nk_proxy *p = nk_req_ctx(req);
    const struct iovec plain = piece(data, len);

    if (len > 0) {
        (void)push(p, &plain, 1);
        return;
    }
    p->leaving = p->ended = true;
    p->moved_ms = nk_proxy_now(p);
    shut_when_told(p);
    nk_proxy_schedule(p);
}
