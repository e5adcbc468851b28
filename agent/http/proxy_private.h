/*
 * One proxied exchange, as its parts know it: proxy.c has its life, proxy_body.c what goes to the
 * server, proxy_answer.c what comes from it.
 *
 * No other file includes this. Loop thread only.
 */
#ifndef NK_HTTP_PROXY_PRIVATE_H
#define NK_HTTP_PROXY_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "http/proxy.h"
#include "http/reply.h"
#include "http/response.h"

struct nk_proxy {
    struct nk_req *req;           /* borrowed; NULL once it is over */
    struct nk_upstream *upstream; /* owned */
    struct nk_source source;
    struct nk_response answer;
    struct nk_buf in;  /* owned: of the server, not taken apart yet */
    struct nk_buf out; /* owned: for the server, not taken by it yet */
    uv_timer_t timer;
    uint64_t moved_ms; /* when a byte last went to the server or came from it */
    unsigned answer_ms;
    bool upgrade;  /* was asked for */
    bool tunnel;   /* and was granted */
    bool open;     /* the server is there */
    bool deaf;     /* it takes no more */
    bool answered; /* the head of its answer is on its way */
    bool broken;   /* and its body ends before its end */
    bool leaving;  /* the client has shut its side */
    bool ended;    /* and all that it sent through the tunnel is read */
    bool shut;     /* and the server was told */
};

uint64_t nk_proxy_now(const struct nk_proxy *p);
void nk_proxy_schedule(struct nk_proxy *p); /* what is waited for has changed */
int nk_proxy_no_memory(struct nk_err *err); /* -1 */

extern const struct nk_body_sink nk_proxy_body_sink;
/* What waits for the server, as far as it takes it. */
void nk_proxy_body_flush(struct nk_proxy *p);
/* As nk_upgrade.on_data. */
void nk_proxy_body_on_data(struct nk_req *req, const void *data, size_t len);

/* Reads the head of the answer as far as it has come, and passes it on. -1: it is none. */
int nk_proxy_answer_read(struct nk_proxy *p, struct nk_err *err);
/* As nk_source.pull. */
enum nk_pull nk_proxy_answer_pull(struct nk_source *source, struct nk_buf *out, size_t room);

#endif
