/*
 * The heads of a proxied exchange: what of a request goes on to the server behind, and what of its
 * answer comes back.
 *
 * Nothing is copied that is between two neighbours only, frames a body, or is ours: those lines are
 * written anew or left out. Pure functions on buffers.
 */
#ifndef NK_HTTP_PROXY_HEAD_H
#define NK_HTTP_PROXY_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct nk_head;
struct nk_response;

struct nk_proxy_head {
    const struct nk_head *head; /* borrowed, as all here: for the call */
    const char *method;
    const char *target; /* in the path: where the server's own path begins */
    const char *host;   /* that the client asked for; or NULL */
    const char *peer;   /* the client's address; "" where it has none */
    uint16_t port;
    bool upgrade;    /* to a WebSocket */
    bool keeps_auth; /* Authorization is meant for the server */
};

/* The whole head, to its blank line. */
void nk_proxy_head_request(struct nk_buf *out, const struct nk_proxy_head *p);

/* The lines of an answer. `cors`: those that we say ourselves stay out. */
void nk_proxy_head_answer(struct nk_buf *out, const struct nk_response *r, bool cors);

#endif
