#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 16
#define BLOCK_MIN 1024
#define BLOCK_MAX (16 * 1024)

struct nk_arena_block {
    struct nk_arena_block *next; /* owned */
    size_t cap;
    size_t used;
    _Alignas(ALIGN) uint8_t data[];
};

void nk_arena_fini(struct nk_arena *a)
{
    struct nk_arena_block *block = a->blocks;

    while (block) {
        struct nk_arena_block *next = block->next;

        free(block);
        block = next;
    }
    *a = (struct nk_arena){0};
}

/* What is larger than a block gets one of its own, behind the newest, which keeps its room. */
static struct nk_arena_block *add_block(struct nk_arena *a, size_t n)
{
    size_t cap = a->blocks ? a->blocks->cap * 2 : BLOCK_MIN;
    struct nk_arena_block *block;

    if (cap > BLOCK_MAX)
        cap = BLOCK_MAX;
    if (cap < n)
        cap = n;
    block = calloc(1, sizeof *block + cap);
    if (!block)
        return NULL;
    block->cap = cap;
    if (a->blocks && n > BLOCK_MAX) {
        block->next = a->blocks->next;
        a->blocks->next = block;
        return block;
    }
    block->next = a->blocks;
    a->blocks = block;
    return block;
}

void *nk_arena_alloc(struct nk_arena *a, size_t n)
{
    struct nk_arena_block *block = a->blocks;
    void *result;

    if (n > SIZE_MAX / 2)
        return NULL;
    n = n ? (n + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    if (!block || block->cap - block->used < n)
        block = add_block(a, n);
    if (!block)
        return NULL;
    result = block->data + block->used;
    block->used += n;
    a->used += n;
    return result;
}

char *nk_arena_dup(struct nk_arena *a, const void *data, size_t n)
{
    char *copy = n < SIZE_MAX ? nk_arena_alloc(a, n + 1) : NULL;

    if (copy && n > 0)
        memcpy(copy, data, n);
    return copy;
}

char *nk_arena_str(struct nk_arena *a, const char *s)
{
    return nk_arena_dup(a, s, strlen(s));
}
