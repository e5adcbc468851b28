/*
 * Percent-coding of URLs, and the parameters of a query.
 *
 * Decoded once, into the arena of the request. A NUL, or a `%` without two hexadecimal digits, is an
 * error. In a query `+` is a space, as browsers and libraries write it. No I/O.
 */
#ifndef NK_HTTP_QUERY_H
#define NK_HTTP_QUERY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "http/router.h"

#define NK_QUERY_MAX 64 /* parameters; far more than a row knows, since one of them may repeat */

struct nk_query {
    struct {
        const char *name;  /* borrowed: the arena's */
        const char *value; /* borrowed: the arena's; ends in a NUL */
        size_t len;
    } pair[NK_QUERY_MAX];
    size_t count;
    bool more; /* than there is room for */
};

/* NULL and `err` (NK_BAD_REQUEST, NK_OVERLOADED) where it cannot be decoded. */
char *nk_query_decode(struct nk_arena *arena, const char *text, size_t len, bool plus,
                      size_t *out_len, struct nk_err *err);

/* On failure `out` is left empty: half a query is not a query. */
int nk_query_parse(struct nk_arena *arena, const char *text, size_t len, struct nk_query *out,
                   struct nk_err *err);

/* Refuses what the row does not know, and what comes twice but may not. */
int nk_query_check(const struct nk_query *q, const struct nk_route *route, struct nk_err *err);

#endif
