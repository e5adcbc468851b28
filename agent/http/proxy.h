/*
 * A request that another server on loopback answers: its head is written anew, its body and the
 * answer's stream through, and after 101 bytes go both ways as they are.
 *
 * Each side is read only as fast as the other takes it; at most one read of each waits here. What
 * the server says is judged like any stranger's words: a broken answer is 502, one that cannot be
 * completed cuts the client's. A client that leaves takes the connection to the server with it. One
 * connection for each request. Owned by the request; loop thread only.
 */
#ifndef NK_HTTP_PROXY_H
#define NK_HTTP_PROXY_H

#include "http/request.h"
#include "http/upstream.h"

#define NK_PROXY_CONNECT_MS 5000
#define NK_PROXY_ANSWER_MS 300000 /* without a byte moved, before the answer has begun */
#define NK_PROXY_LEAVE_MS 750     /* without one, after the client has shut its side */

struct nk_proxy_config {
    uv_loop_t *loop;
    struct nk_jobs *jobs; /* borrowed: outlives the request */
    uint16_t port;
    const char *target;        /* in nk_req_path: where the server's own path begins */
    bool keeps_auth;           /* Authorization is meant for the server */
    const struct nk_creds *as; /* as in nk_upstream_config, these four */
    const void *share;
    bool (*may)(const void *who, int family, uint16_t port);
    const void *who;
    unsigned connect_ms, answer_ms; /* 0: as above */
};

/* Takes over the duty to reply; -1 when nothing was sent. */
int nk_proxy_open(struct nk_req *req, const struct nk_proxy_config *cfg, struct nk_err *err);

#endif
