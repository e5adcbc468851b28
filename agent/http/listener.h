/*
 * One listening socket: accepts, and rests when there is no room.
 *
 * Out of descriptors or memory it rests for a moment and tries again; over the cap it rests until a
 * connection closes. It never spins. Owned by the server; loop thread only.
 */
#ifndef NK_HTTP_LISTENER_H
#define NK_HTTP_LISTENER_H

#include <stdbool.h>

#include "http/bind.h"
#include "http/inside.h"

struct nk_listener {
    struct nk_server *server; /* borrowed: outlives it */
    struct nk_list link;
    uv_poll_t poll;
    uv_timer_t rest;
    int fd;                   /* owned */
    struct nk_bind_file file; /* owned */
    bool local;
    unsigned open_handles;
};

/* Takes `fd` and `file`, also on failure. -errno or 0. */
int nk_listener_open(struct nk_server *s, int fd, struct nk_bind_file *file, bool local);
void nk_listener_close(struct nk_listener *l);
unsigned nk_listener_port(const struct nk_listener *l); /* 0: not TCP */
/* Accepts, or stops to, as the server has room. */
void nk_listener_start(struct nk_listener *l);
void nk_listener_stop(struct nk_listener *l);

#endif
