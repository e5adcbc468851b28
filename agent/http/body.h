/*
 * What the row says of the body: whether there may be one, of which type, how large, and who takes
 * it. Loop thread only.
 */
#ifndef NK_HTTP_BODY_H
#define NK_HTTP_BODY_H

#include "base/err.h"

struct nk_req;

/* Before a byte of it is read. Sets the limit, and whether the body is collected here (then the
 * handler comes at its end) or streamed by the handler. */
int nk_body_check(struct nk_req *req, struct nk_err *err);

/* The collected body is complete: an object, or nothing where the row allows that. */
int nk_body_parse(struct nk_req *req, struct nk_err *err);

#endif
