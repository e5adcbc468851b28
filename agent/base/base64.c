#include "base/base64.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/word.h"

#define STEP_IN 6
#define STEP_OUT 8
#define PIECE (48 * 1024)

/* Eight values below 64, one a byte, to their letters: every byte gets the distance that its range
 * of the alphabet has, without a table. (x + 128 - n) has the top bit where x >= n. */
static uint64_t to_letters(uint64_t x)
{
    uint64_t from_a = (x + NK_WORD_ONES * (128 - 26)) >> 7 & NK_WORD_ONES;
    uint64_t from_0 = (x + NK_WORD_ONES * (128 - 52)) >> 7 & NK_WORD_ONES;
    uint64_t plus = (x + NK_WORD_ONES * (128 - 62)) >> 7 & NK_WORD_ONES;
    uint64_t slash = (x + NK_WORD_ONES * (128 - 63)) >> 7 & NK_WORD_ONES;

    return x + NK_WORD_ONES * 'A' + from_a * 6 - from_0 * 75 - plus * 15 + slash * 3;
}

/* 48 bits to eight bytes of 6 bits each. */
static uint64_t spread(uint64_t v)
{
    v = (v & UINT64_C(0xffffff000000)) << 8 | (v & UINT64_C(0xffffff));
    v = (v & UINT64_C(0x00fff00000fff000)) << 4 | (v & UINT64_C(0x00000fff00000fff));
    return (v & UINT64_C(0x0fc00fc00fc00fc0)) << 2 | (v & UINT64_C(0x003f003f003f003f));
}

static void encode_step(const uint8_t *in, uint8_t *out, size_t given)
{
    uint64_t v = 0;

    memcpy(&v, in, given);
    v = htobe64(to_letters(spread(be64toh(v) >> 16)));
    memcpy(out, &v, STEP_OUT);
}

/* The last 1 to 6 bytes; returns how many letters they make. */
static size_t encode_tail(const uint8_t *in, size_t len, uint8_t *out)
{
    uint8_t letters[STEP_OUT];
    size_t exact = (len * 8 + 5) / 6;
    size_t padded = (len + 2) / 3 * 4;

    encode_step(in, letters, len);
    memset(letters + exact, '=', sizeof letters - exact);
    memcpy(out, letters, padded);
    return padded;
}

static size_t encode_piece(const uint8_t *in, size_t len, uint8_t *out)
{
    uint8_t *start = out;

    while (len >= STEP_OUT) {
        encode_step(in, out, STEP_OUT);
        in += STEP_IN;
        out += STEP_OUT;
        len -= STEP_IN;
    }
    while (len > 0) {
        size_t n = len < STEP_IN ? len : STEP_IN;

        out += encode_tail(in, n, out);
        in += n;
        len -= n;
    }
    return (size_t)(out - start);
}

void nk_base64_encode(struct nk_buf *out, const void *data, size_t len)
{
    const uint8_t *in = data;

    while (len > 0) {
        size_t n = len < PIECE ? len : PIECE;
        uint8_t *to = nk_buf_reserve(out, (n + 2) / 3 * 4);

        if (!to)
            return;
        nk_buf_commit(out, encode_piece(in, n, to));
        in += n;
        len -= n;
    }
}

/* The value of a letter, or 0xff. */
static const uint8_t values[128] = {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 62,   0xff, 0xff, 0xff, 63,
    52,   53,   54,   55,   56,   57,   58,   59,   60,   61,   0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,
    15,   16,   17,   18,   19,   20,   21,   22,   23,   24,   25,   0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 26,   27,   28,   29,   30,   31,   32,   33,   34,   35,   36,   37,   38,   39,   40,
    41,   42,   43,   44,   45,   46,   47,   48,   49,   50,   51,   0xff, 0xff, 0xff, 0xff, 0xff,
};

/* Four letters to 24 bits; false when one is none. */
static bool decode_step(const uint8_t *in, uint32_t *out)
{
    uint8_t v[4];

    for (int i = 0; i < 4; i++) {
        v[i] = in[i] < 128 ? values[in[i]] : 0xff;
        if (v[i] == 0xff)
            return false;
    }
    *out = (uint32_t)v[0] << 18 | (uint32_t)v[1] << 12 | (uint32_t)v[2] << 6 | v[3];
    return true;
}

/* The last four letters, of which up to two are padding. Returns the bytes made, or -EINVAL. */
static int decode_tail(const uint8_t *in, uint8_t *out)
{
    uint8_t letters[4] = {in[0], in[1], in[2], in[3]};
    int pads = in[3] != '=' ? 0 : in[2] != '=' ? 1 : 2;
    uint32_t v;

    for (int i = 4 - pads; i < 4; i++)
        letters[i] = 'A';
    if (!decode_step(letters, &v) || (v & ((1u << (8 * pads)) - 1)) != 0)
        return -EINVAL;
    for (int i = 0; i < 3 - pads; i++)
        out[i] = (uint8_t)(v >> (16 - 8 * i));
    return 3 - pads;
}

int nk_base64_decode(const char *text, size_t len, uint8_t *out, size_t *out_len)
{
    const uint8_t *in = (const uint8_t *)text;
    uint8_t *start = out;
    uint32_t v;
    int tail;

    if (len % 4 != 0)
        return -EINVAL;
    for (; len > 4; len -= 4, in += 4, out += 3) {
        if (!decode_step(in, &v))
            return -EINVAL;
        out[0] = (uint8_t)(v >> 16);
        out[1] = (uint8_t)(v >> 8);
        out[2] = (uint8_t)v;
    }
    tail = len ? decode_tail(in, out) : 0;
    if (tail < 0)
        return tail;
    *out_len = (size_t)(out - start) + (size_t)tail;
    return 0;
}
