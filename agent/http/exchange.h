/*
 * The life of one request in its connection: made at its first byte, told of its end, freed.
 *
 * The connection owns it. Loop thread only.
 */
#ifndef NK_HTTP_EXCHANGE_H
#define NK_HTTP_EXCHANGE_H

#include "http/inside.h"

/* -ENOMEM or 0. */
int nk_exchange_begin(struct nk_conn *c);

/* The answer is complete, or its client is gone. May be repeated; the first one counts. */
void nk_exchange_finish(struct nk_req *req, bool gone);

/* Finishes and frees the request. */
void nk_exchange_end(struct nk_conn *c, bool gone);

/* Answers with an error after which nothing more can be read from the connection. */
void nk_exchange_refuse(struct nk_req *req, const struct nk_err *err);

#endif
