/*
 * A connection: reads, hands to the request, writes, waits, ends.
 *
 * Everything that can move on is moved on by one function, nk_conn's step, which is run from the
 * events of the socket, from the timer, and from the server's list of connections that something was
 * done to (`touch`). It never runs inside itself, so replying, waking and pausing are safe from any
 * callback. Owned by the server; loop thread only.
 */
#ifndef NK_HTTP_CONN_H
#define NK_HTTP_CONN_H

#include <stdbool.h>

#include "http/inside.h"

/* Takes `fd`, also on failure. -errno or 0. */
int nk_conn_open(struct nk_server *s, int fd, bool local, bool reserved);
/* Cuts it: a running request hears `gone`. */
void nk_conn_close(struct nk_conn *c);
/* The same, from anywhere: a connection that is in its step is closed at the end of it. */
void nk_conn_cut(struct nk_conn *c);

/* Something changed from outside: it is stepped soon, never from within. */
void nk_conn_touch(struct nk_conn *c);
void nk_conn_step(struct nk_conn *c);

#endif
