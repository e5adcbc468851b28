/*
 * What is enforced before a handler runs: token, origin and host, then what the route's row says.
 *
 * The token is judged before everything else, so that a stranger learns nothing, not even which
 * paths exist. Loop thread only; owns nothing.
 */
#ifndef NK_API_GATE_H
#define NK_API_GATE_H

#include <stdbool.h>

#include "base/err.h"

struct nk_req;

/* The server's `gate` hook. 0, -1 with what is wrong, or NK_GATE_LATER. OPTIONS from an allowed
 * origin is answered here. */
int nk_gate_check(struct nk_req *req, struct nk_err *err);

/* `host` of a Host header, port and all: an address, localhost, or one of `names` (NULL-ended). */
bool nk_gate_host_allowed(const char *host, const char *const *names);

#endif
