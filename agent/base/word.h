/*
 * Eight bytes at a time: what the text loops of this room need to run at memory speed.
 *
 * A mask has the top bit set of each byte that was looked for; only its lowest set bit is exact
 * (a borrow may mark bytes above it). Words are little-endian, whatever the machine. No state.
 */
#ifndef NK_BASE_WORD_H
#define NK_BASE_WORD_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NK_WORD_ONES UINT64_C(0x0101010101010101)
#define NK_WORD_HIGH UINT64_C(0x8080808080808080)

static inline uint64_t nk_word_load(const void *p)
{
    uint64_t w;

    memcpy(&w, p, sizeof w);
    return le64toh(w);
}

/* What a JSON string may not hold as it is: control characters, quotes, backslashes. */
static inline bool nk_word_json_byte(uint8_t c)
{
    return c < 0x20 || c == '"' || c == '\\';
}

/* Marks those bytes in a word. */
static inline uint64_t nk_word_json_special(uint64_t w)
{
    uint64_t control = w - NK_WORD_ONES * 0x20;
    uint64_t quote = (w ^ NK_WORD_ONES * '"') - NK_WORD_ONES;
    uint64_t slash = (w ^ NK_WORD_ONES * '\\') - NK_WORD_ONES;

    return (control | quote | slash) & ~w & NK_WORD_HIGH;
}

#define NK_WORD_STEP 16

/* The number of the lowest marked byte; `mask` is not 0. */
static inline unsigned nk_word_first(uint64_t mask)
{
    return (unsigned)__builtin_ctzll(mask) / 8;
}

#endif
