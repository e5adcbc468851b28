#include "base/json_keys.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"

#define FEW 8 /* up to here every pair is compared */
#define FNV_PRIME UINT64_C(0x100000001b3)
#define SPREAD UINT64_C(0x9e3779b97f4a7c15) /* the high bits of the product depend on all bits */

struct cursor {
    const uint8_t *at, *end;
};

static uint32_t hex4(const uint8_t *p)
{
    uint32_t v = 0;

    for (int i = 0; i < 4; i++) {
        uint32_t digit = p[i] <= '9' ? p[i] - (uint32_t)'0' : (p[i] | 0x20u) - 'a' + 10;

        v = v << 4 | digit;
    }
    return v;
}

static uint32_t short_escape(uint8_t kind)
{
    switch (kind) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return kind;
    }
}

static uint32_t next_escape(struct cursor *c)
{
    uint8_t kind = *c->at++;
    uint32_t high;

    if (kind != 'u')
        return short_escape(kind);
    high = hex4(c->at);
    c->at += 4;
    if (high < 0xd800 || high > 0xdbff)
        return high;
    c->at += 6; /* the low half, with its backslash and u */
    return 0x10000 + ((high - 0xd800) << 10) + (hex4(c->at - 4) - 0xdc00);
}

/* The next character of a valid string, however it is spelled. Not called at the end. */
static uint32_t next_char(struct cursor *c)
{
    uint32_t lead = *c->at++;
    unsigned more = lead < 0xc0 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;

    if (lead == '\\')
        return next_escape(c);
    if (more == 0)
        return lead;
    lead &= 0x3fu >> more;
    for (; more > 0; more--)
        lead = lead << 6 | (*c->at++ & 0x3f);
    return lead;
}

static uint64_t hash(const struct nk_json_keys *k, const uint8_t *text, size_t len)
{
    struct cursor c = {text, text + len};
    uint64_t h = k->seed;

    while (c.at < c.end)
        h = (h ^ next_char(&c)) * FNV_PRIME;
    return h;
}

static bool same_text(const struct nk_json_key *a, const struct nk_json_key *b)
{
    struct cursor x = {a->text, a->text + a->len};
    struct cursor y = {b->text, b->text + b->len};

    while (x.at < x.end && y.at < y.end) {
        if (next_char(&x) != next_char(&y))
            return false;
    }
    return x.at == x.end && y.at == y.end;
}

static bool same(const struct nk_json_key *a, const struct nk_json_key *b)
{
    return a->hash == b->hash && same_text(a, b);
}

void nk_json_keys_init(struct nk_json_keys *k)
{
    k->item = k->few;
    k->cap = NK_JSON_KEYS_INLINE;
    k->count = 0;
    nk_id_random(&k->seed, sizeof k->seed);
}

void nk_json_keys_fini(struct nk_json_keys *k)
{
    if (k->item != k->few)
        free(k->item);
    k->item = k->few;
    k->count = 0;
}

static int grow(struct nk_json_keys *k)
{
    size_t cap = k->cap * 2;
    struct nk_json_key *old = k->item == k->few ? NULL : k->item;
    struct nk_json_key *item = realloc(old, cap * sizeof *item);

    if (!item)
        return -ENOMEM;
    if (!old)
        memcpy(item, k->few, sizeof k->few);
    k->item = item;
    k->cap = cap;
    return 0;
}

int nk_json_keys_add(struct nk_json_keys *k, const uint8_t *text, size_t len)
{
    if (k->count == k->cap && grow(k) < 0)
        return -ENOMEM;
    k->item[k->count++] = (struct nk_json_key){hash(k, text, len), text, len};
    return 0;
}

static int find_pairwise(const struct nk_json_key *keys, size_t n, const uint8_t **out_twice)
{
    for (size_t i = 1; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (same(keys + i, keys + j)) {
                *out_twice = keys[i].text;
                return -EEXIST;
            }
        }
    }
    return 0;
}

/* `slots` is a table of 1 << bits numbers of keys, counted from 1; 0 is free. */
static int find_hashed(const struct nk_json_key *keys, size_t n, uint32_t *slots, unsigned bits,
                       const uint8_t **out_twice)
{
    size_t mask = ((size_t)1 << bits) - 1;

    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)((keys[i].hash * SPREAD) >> (64 - bits));

        for (; slots[at]; at = (at + 1) & mask) {
            if (same(keys + i, keys + slots[at] - 1)) {
                *out_twice = keys[i].text;
                return -EEXIST;
            }
        }
        slots[at] = (uint32_t)(i + 1);
    }
    return 0;
}

int nk_json_keys_close(struct nk_json_keys *k, size_t first, const uint8_t **out_twice)
{
    const struct nk_json_key *keys = k->item + first;
    size_t n = k->count - first;
    unsigned bits = 4;
    uint32_t *slots;
    int rc;

    k->count = first;
    if (n <= FEW)
        return find_pairwise(keys, n, out_twice);
    while ((size_t)1 << bits < n * 2)
        bits++;
    slots = calloc((size_t)1 << bits, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    rc = find_hashed(keys, n, slots, bits, out_twice);
    free(slots);
    return rc;
}
