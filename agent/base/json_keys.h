/*
 * Finds a key that stands twice in a JSON object, in the text, without decoding into memory.
 *
 * Keys of all open objects lie in one array, those of an inner object behind those of the outer; an
 * object's keys are judged and forgotten when it closes. Equal means equal after decoding. The hash
 * has a random start, so nobody can choose keys that collide.
 *
 * A value on the stack of one parse.
 */
#ifndef NK_BASE_JSON_KEYS_H
#define NK_BASE_JSON_KEYS_H

#include <stddef.h>
#include <stdint.h>

#define NK_JSON_KEYS_INLINE 32

struct nk_json_key {
    uint64_t hash;
    const uint8_t *text; /* borrowed: between the quotes, already found valid */
    size_t len;
};

struct nk_json_keys {
    struct nk_json_key *item; /* `few`, or owned */
    size_t count, cap;
    uint64_t seed;
    struct nk_json_key few[NK_JSON_KEYS_INLINE];
};

void nk_json_keys_init(struct nk_json_keys *k);
void nk_json_keys_fini(struct nk_json_keys *k);
int nk_json_keys_add(struct nk_json_keys *k, const uint8_t *text, size_t len); /* 0, or -ENOMEM */

/* The object whose first key has number `first` closes. 0; -EEXIST and a key that was there before;
 * or -ENOMEM. */
int nk_json_keys_close(struct nk_json_keys *k, size_t first, const uint8_t **out_twice);

#endif
