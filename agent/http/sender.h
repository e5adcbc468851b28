/*
 * What a connection has to say: pulled from its source, framed, written.
 *
 * Tries the socket at once; the caller polls for room only after NK_FLUSH_BLOCKED. Owned by the
 * request; loop thread only. Calls nobody but the source's pull.
 */
#ifndef NK_HTTP_SENDER_H
#define NK_HTTP_SENDER_H

#include "http/inside.h"

enum nk_flush {
    NK_FLUSH_DONE,    /* all is written */
    NK_FLUSH_WAIT,    /* nothing to write now */
    NK_FLUSH_BLOCKED, /* the socket is full */
    NK_FLUSH_AGAIN,   /* there is more, others come first */
    NK_FLUSH_BROKEN,  /* the client is gone, or the answer cannot be completed */
};

enum nk_flush nk_sender_flush(struct nk_req *req);
void nk_sender_fini(struct nk_output *out);

/* The least that can be said without memory: 503, best effort, then the end of the connection. */
void nk_sender_last_word(struct nk_req *req);

#endif
