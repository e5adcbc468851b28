/*
 * A growable run of bytes, for building replies and messages.
 *
 * A failed allocation, or growing past `max`, sets `failed`; later additions then do nothing, so an
 * encoder checks once, at its end. Consumed bytes at the front are skipped by `off` and moved away
 * only when space is needed.
 *
 * Owned by one thread. A zeroed struct is a valid empty buffer without a bound.
 */
#ifndef NK_BASE_BUF_H
#define NK_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct nk_buf {
    uint8_t *data; /* owned */
    size_t off;    /* bytes at the front already consumed */
    size_t len;    /* end of the valid bytes, counted from data[0]; off <= len <= cap */
    size_t cap;
    size_t max; /* 0: no bound */
    bool failed;
};

void nk_buf_fini(struct nk_buf *b); /* releases, and leaves an empty buffer with the same bound */

/* Room for `n` more bytes, or NULL (and `failed`). Followed by nk_buf_commit of what was written. */
uint8_t *nk_buf_reserve(struct nk_buf *b, size_t n);
void nk_buf_commit(struct nk_buf *b, size_t n);
void nk_buf_add(struct nk_buf *b, const void *data, size_t n);
void nk_buf_add_char(struct nk_buf *b, char c);
void nk_buf_add_str(struct nk_buf *b, const char *s);
void nk_buf_add_u64(struct nk_buf *b, uint64_t v);
void nk_buf_add_fmt(struct nk_buf *b, const char *fmt, ...) NK_PRINTF(2, 3);

static inline size_t nk_buf_left(const struct nk_buf *b)
{
    return b->len - b->off;
}

static inline const uint8_t *nk_buf_front(const struct nk_buf *b)
{
    return b->data ? b->data + b->off : NULL; /* NULL + 0 is not defined in C */
}

void nk_buf_consume(struct nk_buf *b, size_t n); /* an emptied buffer starts again at 0 */

#endif
