/*
 * Answers: whole ones, and streams that the connection pulls.
 *
 * Exactly one of the nk_reply_… functions is called for a request, once. Standard headers (Date is
 * not sent; X-Request-Id, X-Nook-Instance, Content-Length or Transfer-Encoding, Connection) are
 * added here; others by nk_reply_header before. HEAD sends the headers alone, whatever the body.
 *
 * A stream is pulled: the connection asks its source for bytes when the socket can take them, so a
 * slow reader is back-pressure by the shape of the interface. At most NK_REPLY_QUEUE bytes wait in
 * a connection.
 */
#ifndef NK_HTTP_REPLY_H
#define NK_HTTP_REPLY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "http/request.h"

#define NK_REPLY_QUEUE (256u * 1024u)

enum nk_pull {
    NK_PULL_MORE, /* bytes were added; ask again */
    NK_PULL_WAIT, /* nothing now: nk_reply_wake tells when */
    NK_PULL_END,  /* complete, with what was added */
    NK_PULL_FAIL, /* broken off: the connection is cut so that the client can see it */
    /* As FAIL, and the text that was added says why: it is the extension `broken` of a last chunk
     * whose data never comes. Where there are no chunks it is left out. */
    NK_PULL_BROKEN,
};

struct nk_source {
    /* Adds to `out`, aiming at no more than `room` bytes (a single event may go past it by its own
     * size, at most 512 KiB). */
    enum nk_pull (*pull)(struct nk_source *src, struct nk_buf *out, size_t room);
    /* Both NULL, or: how many bytes lie ready that `send` can move to a socket by itself (0: pull),
     * and how many of them it did; -EAGAIN: the socket is full; another -errno: they must be pulled
     * after all, and all that were ready can be. */
    size_t (*ready)(struct nk_source *src);
    ssize_t (*send)(struct nk_source *src, int socket, size_t len);
};

/* Copies name and value; a value with CR, LF or NUL is our own mistake. */
void nk_reply_header(struct nk_req *req, const char *name, const char *value);

/* Whole header lines, which are known to be well formed. */
void nk_reply_lines(struct nk_req *req, const struct nk_buf *lines);
/* Ahead of the answer, any number of times: 102 to 199. HTTP/1.0 has none. */
void nk_reply_interim(struct nk_req *req, int status, const struct nk_buf *lines);

void nk_reply_empty(struct nk_req *req, int status);
void nk_reply_bytes(struct nk_req *req, int status, const char *type, const void *data, size_t len);
/* Takes the content of `body`, leaving it empty; a failed buffer becomes 503 overloaded. */
void nk_reply_take(struct nk_req *req, int status, const char *type, struct nk_buf *body);

/* `src` is borrowed until on_close. length -1: chunked (HTTP/1.0: until the end of connection). */
void nk_reply_stream(struct nk_req *req, int status, const char *type, struct nk_source *src,
                     int64_t length);
/* More can be pulled. Safe at any time until on_close; the pull comes later, never from within. */
void nk_reply_wake(struct nk_req *req);
/* A regular file from `offset`; takes `fd`, also on failure. sendfile after a read-ahead job. */
void nk_reply_file(struct nk_req *req, int status, const char *type, int fd, uint64_t offset,
                   uint64_t len);

/* 101: from now on bytes come to `on_data` as they arrive and go out by `src`. `on_data` with
 * len 0: the client's end. Pausing and waking as above. Read bytes are borrowed for the call. */
struct nk_upgrade {
    void (*on_data)(struct nk_req *req, const void *data, size_t len);
    struct nk_source *src; /* borrowed until on_close */
};
void nk_reply_upgrade(struct nk_req *req, const struct nk_upgrade *up /* static but for src */);

/* The client has shut its sending side; it may still read. After 101 only while paused: else on_data
 * tells. */
void nk_req_on_half_close(struct nk_req *req, void (*fn)(struct nk_req *req, void *ctx), void *ctx);

#endif
