#include "base/secret.h"

#include <string.h>

static const uint32_t rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static uint32_t load_be(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void expand(const uint8_t block[64], uint32_t w[64])
{
    for (int i = 0; i < 16; i++)
        w[i] = load_be(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;

        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

/* One round. The names of the eight words turn, so that their values need not move. */
static inline void mix(uint32_t s[8], unsigned turn, uint32_t in)
{
    uint32_t a = s[-turn & 7], b = s[(1 - turn) & 7], c = s[(2 - turn) & 7];
    uint32_t e = s[(4 - turn) & 7], f = s[(5 - turn) & 7], g = s[(6 - turn) & 7];
    uint32_t *d = &s[(3 - turn) & 7], *h = &s[(7 - turn) & 7];
    uint32_t t1 = *h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + in;

    *d += t1;
    *h = t1 + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

static void compress(uint32_t state[8], const uint8_t block[64])
{
    uint32_t w[64], s[8];

    expand(block, w);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i += 8) {
        mix(s, 0, rounds[i] + w[i]);
        mix(s, 1, rounds[i + 1] + w[i + 1]);
        mix(s, 2, rounds[i + 2] + w[i + 2]);
        mix(s, 3, rounds[i + 3] + w[i + 3]);
        mix(s, 4, rounds[i + 4] + w[i + 4]);
        mix(s, 5, rounds[i + 5] + w[i + 5]);
        mix(s, 6, rounds[i + 6] + w[i + 6]);
        mix(s, 7, rounds[i + 7] + w[i + 7]);
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

void nk_sha256_init(struct nk_sha256 *h)
{
    *h = (struct nk_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                      0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void nk_sha256_add(struct nk_sha256 *h, const void *data, size_t len)
{
    const uint8_t *p = data;

    while (len > 0) {
        size_t have = h->len % 64;
        size_t n = len < 64 - have ? len : 64 - have;

        if (n == 64) {
            compress(h->state, p);
        } else {
            memcpy(h->block + have, p, n);
            if (have + n == 64)
                compress(h->state, h->block);
        }
        h->len += n;
        p += n;
        len -= n;
    }
}

void nk_sha256_end(struct nk_sha256 *h, uint8_t out[32])
{
    static const uint8_t pad[64] = {0x80};
    uint64_t bits = h->len * 8;
    uint8_t length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    nk_sha256_add(h, pad, 1 + (119 - h->len % 64) % 64);
    nk_sha256_add(h, length, sizeof length);
    for (int i = 0; i < 32; i++)
        out[i] = (uint8_t)(h->state[i / 4] >> (24 - i % 4 * 8));
    nk_secret_wipe(h, sizeof *h);
}

static void digest(const void *data, size_t len, uint8_t out[32])
{
    struct nk_sha256 h;

    nk_sha256_init(&h);
    nk_sha256_add(&h, data, len);
    nk_sha256_end(&h, out);
}

void nk_secret_set(struct nk_secret *s, const void *token, size_t len)
{
    digest(token, len, s->digest);
    s->set = true;
}

bool nk_secret_equal(const struct nk_secret *s, const void *token, size_t len)
{
    uint8_t other[32];
    unsigned differ = 0;

    digest(token, len, other);
    for (size_t i = 0; i < sizeof other; i++)
        differ |= (unsigned)(s->digest[i] ^ other[i]);
    return s->set && differ == 0;
}

void nk_secret_wipe(void *memory, size_t len)
{
    explicit_bzero(memory, len);
}
