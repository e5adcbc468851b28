/*
 * The client side, for the verbs of the command line: blocking, one connection, one request.
 *
 * HTTP/1.1 over the Unix socket or a numeric TCP address. Owned by the caller, used from one thread;
 * never used by the daemon itself.
 */
#ifndef NK_HTTP_CLIENT_H
#define NK_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct nk_client;

struct nk_client_target {
    const char *socket;  /* Unix socket path, or NULL */
    const char *url;     /* http://ADDR:PORT, where socket is NULL */
    const char *token;   /* bearer, or NULL */
    unsigned timeout_ms; /* to connect and to the first byte of an answer; 0: none */
};

struct nk_client_request {
    const char *method, *path;  /* a method and a path with its query, as they go out */
    const char *const *headers; /* "Name: value" lines, NULL-ended, or NULL */
    const void *body;
    int64_t body_len; /* -1: a chunked body follows by nk_client_send_body */
};

int nk_client_new(const struct nk_client_target *target, struct nk_client **out,
                  struct nk_err *err);
void nk_client_free(struct nk_client *c);
int nk_client_fd(const struct nk_client *c); /* borrowed: to poll beside standard input */

int nk_client_send(struct nk_client *c, const struct nk_client_request *req, struct nk_err *err);
int nk_client_send_body(struct nk_client *c, const void *data, size_t len, struct nk_err *err);
int nk_client_end_body(struct nk_client *c, struct nk_err *err);

/* Reads to the end of the headers. */
int nk_client_read_head(struct nk_client *c, int *out_status, struct nk_err *err);
const char *nk_client_header(const struct nk_client *c, const char *name);
/* The next nk_client_read_body gives what it has without waiting for the descriptor. */
bool nk_client_pending(const struct nk_client *c);
/* Waits once if nothing is pending and appends what has come of the body, which may be nothing.
 * *out_end: complete. A connection that ends before its body does is an error. */
int nk_client_read_body(struct nk_client *c, struct nk_buf *out, bool *out_end, struct nk_err *err);

#endif
