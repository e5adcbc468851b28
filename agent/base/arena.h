/*
 * Memory that is released all at once: the strings and small objects of one request.
 *
 * Allocations are aligned to 16 bytes and never freed one by one. Owned by one thread.
 * A zeroed struct is a valid empty arena.
 */
#ifndef NK_BASE_ARENA_H
#define NK_BASE_ARENA_H

#include <stddef.h>

struct nk_arena_block;

struct nk_arena {
    struct nk_arena_block *blocks; /* owned, newest first */
    size_t used;                   /* bytes handed out over all blocks */
};

void nk_arena_fini(struct nk_arena *a);
void *nk_arena_alloc(struct nk_arena *a, size_t n);                 /* zeroed, or NULL */
char *nk_arena_dup(struct nk_arena *a, const void *data, size_t n); /* adds a NUL, or NULL */
char *nk_arena_str(struct nk_arena *a, const char *s);              /* or NULL */

#endif
