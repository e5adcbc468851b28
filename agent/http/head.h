/*
 * The head of a request, as the parser leaves it, and what our own rules say about it.
 *
 * A plain value: everything in it is borrowed from the parser.
 */
#ifndef NK_HTTP_HEAD_H
#define NK_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "http/router.h"

struct nk_head {
    enum nk_method method; /* NK_METHOD_COUNT: one that is not ours */
    const char *path;      /* without the query; of an absolute target the path alone */
    const char *query;     /* "" where there is none */
    size_t query_len;
    bool queried;          /* there is a query, which may be empty */
    const char *authority; /* of an absolute target, which replaces Host; or NULL */
    const char *fields;    /* name NUL value NUL, `field_count` times */
    size_t field_count;
    int64_t content_length; /* -1: chunked, or no body */
    bool chunked;
    bool has_body;
    bool keep_alive;
    bool http10;
    bool connection_upgrade;
};

/* The value of the `nth` field of that name (any case), or NULL. */
const char *nk_head_field(const struct nk_head *head, const char *name, unsigned nth);
/* Whether a comma-separated list holds the token, in any case; NULL is an empty list. */
bool nk_head_has_token(const char *list, const char *token);

/* One framing, one Host, a length that can be counted: what llhttp leaves to its user. */
int nk_head_check(const struct nk_head *head, struct nk_err *err);

#endif
