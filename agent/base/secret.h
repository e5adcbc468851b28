/*
 * Secrets: compared in constant time, kept as their SHA-256 only.
 *
 * The hash is our own small SHA-256 (FIPS 180-4): used for tokens and for the fingerprints of
 * request bodies, so no crypto library is linked.
 */
#ifndef NK_BASE_SECRET_H
#define NK_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nk_sha256 {
    uint32_t state[8];
    uint64_t len;
    uint8_t block[64];
};

void nk_sha256_init(struct nk_sha256 *h);
void nk_sha256_add(struct nk_sha256 *h, const void *data, size_t len);
void nk_sha256_end(struct nk_sha256 *h, uint8_t out[32]);

struct nk_secret {
    uint8_t digest[32];
    bool set;
};

void nk_secret_set(struct nk_secret *s, const void *token, size_t len);
bool nk_secret_equal(const struct nk_secret *s, const void *token, size_t len);
void nk_secret_wipe(void *memory, size_t len); /* not optimised away */

#endif
