/*
 * What comes in on a connection: given to the parser, and on to the request, event by event.
 *
 * Loop thread only.
 */
#ifndef NK_HTTP_INTAKE_H
#define NK_HTTP_INTAKE_H

#include "http/inside.h"

enum nk_intake {
    NK_INTAKE_NONE,  /* nothing to do now */
    NK_INTAKE_MOVED, /* something happened: ask again */
    NK_INTAKE_CLOSE, /* the connection is of no more use */
};

/* One event. Never reads the socket. */
enum nk_intake nk_intake_step(struct nk_conn *c);

/* More bytes would be of use, and there is room for them. */
bool nk_intake_wants(const struct nk_conn *c);

/* The socket is read by the sink of the body, now or for a while; or false. */
bool nk_intake_lend(struct nk_conn *c);

#endif
