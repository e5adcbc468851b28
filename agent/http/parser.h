/*
 * From bytes to one request: its head, then its body piece by piece.
 *
 * llhttp in strict mode with our own checks on top: limits, one framing only, one Host, versions
 * 1.0 and 1.1, no fragment, no NUL. The verdict depends on the bytes alone, never on how they were
 * cut. One parser reads one request; it stops behind its last byte, so pipelined bytes are left.
 *
 * Calls nobody back. Lives in the arena of its request; loop thread only; no I/O.
 */
#ifndef NK_HTTP_PARSER_H
#define NK_HTTP_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "http/head.h"

#define NK_PARSER_TRAILER_MAX 8192u

struct nk_parser;

struct nk_parser_limits {
    size_t header_max;
    size_t header_lines_max;
    size_t url_max;
    size_t chunk_line_max;
};

enum nk_parse {
    NK_PARSE_MORE, /* the input is used up */
    NK_PARSE_HEAD, /* the headers are complete: nk_parser_head */
    NK_PARSE_BODY, /* `body` of the input: a piece of the body, never empty */
    NK_PARSE_END,  /* the request is complete */
    NK_PARSE_FAIL, /* err says why; the connection can only be closed */
};

struct nk_parser_input {
    const uint8_t *data; /* borrowed for the call; moved on over what was used */
    size_t len;
    const uint8_t *body; /* points into what was used */
    size_t body_len;
};

struct nk_parser *nk_parser_new(struct nk_arena *arena, const struct nk_parser_limits *limits);
void nk_parser_free(struct nk_parser *p); /* what does not lie in the arena; NULL is fine */

enum nk_parse nk_parser_step(struct nk_parser *p, struct nk_parser_input *in, struct nk_err *err);

/* Valid from NK_PARSE_HEAD on. */
const struct nk_head *nk_parser_head(const struct nk_parser *p);

/* `n` bytes of the body were read by somebody else. Returns how many more may be: of a body of known
 * length all but the last, of another none. */
uint64_t nk_parser_skip(struct nk_parser *p, uint64_t n);

/* Nothing but line ends has come so far. */
bool nk_parser_is_blank(const struct nk_parser *p);

#endif
