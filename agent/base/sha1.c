#include "base/sha1.h"

#include <string.h>

#define BLOCK 64u

static uint32_t rotate(uint32_t v, unsigned n)
{
    return v << n | v >> (32 - n);
}

static void expand(const uint8_t *block, uint32_t w[80])
{
    for (unsigned i = 0; i < 16; i++)
        w[i] = (uint32_t)block[i * 4] << 24 | (uint32_t)block[i * 4 + 1] << 16 |
               (uint32_t)block[i * 4 + 2] << 8 | block[i * 4 + 3];
    for (unsigned i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
}

static uint32_t mix(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
    if (round == 0)
        return ((b & c) | (~b & d)) + 0x5a827999;
    if (round == 1)
        return (b ^ c ^ d) + 0x6ed9eba1;
    if (round == 2)
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    return (b ^ c ^ d) + 0xca62c1d6;
}

static void add_block(uint32_t state[5], const uint8_t *block)
{
    uint32_t w[80];
    uint32_t v[5];

    expand(block, w);
    memcpy(v, state, sizeof v);
    for (unsigned i = 0; i < 80; i++) {
        uint32_t next = rotate(v[0], 5) + mix(i / 20, v[1], v[2], v[3]) + v[4] + w[i];

        v[4] = v[3];
        v[3] = v[2];
        v[2] = rotate(v[1], 30);
        v[1] = v[0];
        v[0] = next;
    }
    for (unsigned i = 0; i < 5; i++)
        state[i] += v[i];
}

/* The end of the data, one bit, zeros, and the length in bits: one block or two. */
static void add_tail(uint32_t state[5], const uint8_t *rest, size_t left, uint64_t len)
{
    uint8_t tail[2 * BLOCK] = {0};
    size_t size = left < BLOCK - 8 ? BLOCK : sizeof tail;

    if (left > 0)
        memcpy(tail, rest, left);
    tail[left] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        tail[size - 1 - i] = (uint8_t)(len * 8 >> (i * 8));
    add_block(state, tail);
    if (size > BLOCK)
        add_block(state, tail + BLOCK);
}

void nk_sha1(const void *data, size_t len, uint8_t out[NK_SHA1_SIZE])
{
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    const uint8_t *at = data;
    size_t left = len;

    for (; left >= BLOCK; left -= BLOCK, at += BLOCK)
        add_block(state, at);
    add_tail(state, at, left, len);
    for (unsigned i = 0; i < NK_SHA1_SIZE; i++)
        out[i] = (uint8_t)(state[i / 4] >> (24 - i % 4 * 8));
}
