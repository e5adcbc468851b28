/*
 * For which identity a request is: its headers in one of their forms, checked, and made one of the
 * tenants. Nothing of a value is kept or shown but its SHA-256.
 *
 * Loop thread only; owns nothing.
 */
#ifndef NK_API_IDENTIFY_H
#define NK_API_IDENTIFY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct nk_req;

/* Sets the request's identity (a struct nk_owner *; none: the sandbox's own). 0, -1 with err, or
 * NK_GATE_LATER: it is named for the first time, and the request is admitted when it is ready.
 * `by_ticket`: a ticket has set it already, and headers may only say the same. */
int nk_identify(struct nk_req *req, bool by_ticket, struct nk_err *err);

/* The one answer for a ticket that is not the caller's to use, whatever the reason. -1. */
int nk_identify_refuse_ticket(struct nk_err *err);

/* 1 to `max` visible ASCII characters. */
bool nk_identify_is_visible(const char *s, size_t max);

#endif
