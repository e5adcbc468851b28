#include "base/utf8.h"

#include <stdint.h>

#include "base/buf.h"
#include "base/word.h"

/* How long a character that begins with `lead` is, and where its second byte may lie (Unicode,
 * table 3-7). 0: nothing begins so. */
static unsigned shape(uint8_t lead, uint8_t *out_low, uint8_t *out_high)
{
    *out_low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    *out_high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* How many bytes at the front are the beginning of a character, which is *out_need bytes long. */
static unsigned match(const uint8_t *p, size_t len, unsigned *out_need)
{
    uint8_t low, high;
    unsigned n = 1;

    *out_need = shape(p[0], &low, &high);
    if (*out_need == 0)
        return 0;
    while (n < *out_need && n < len && p[n] >= low && p[n] <= high) {
        low = 0x80;
        high = 0xbf;
        n++;
    }
    return n;
}

static size_t ascii_prefix(const uint8_t *p, size_t len)
{
    size_t at = 0;

    while (len - at >= 32) {
        uint64_t all = nk_word_load(p + at) | nk_word_load(p + at + 8) | nk_word_load(p + at + 16) |
                       nk_word_load(p + at + 24);

        if (all & NK_WORD_HIGH)
            break;
        at += 32;
    }
    while (at < len && p[at] < 0x80)
        at++;
    return at;
}

static bool continues(uint8_t c)
{
    return (c & 0xc0) == 0x80;
}

/* Most text beyond ASCII: two or three bytes, where the second may be any continuation. */
static size_t common_prefix(const uint8_t *p, size_t len)
{
    size_t at = 0;

    while (len - at >= 3) {
        uint8_t lead = p[at];

        if (lead > 0xe0 && lead < 0xf0 && lead != 0xed && continues(p[at + 1]) &&
            continues(p[at + 2]))
            at += 3;
        else if (lead >= 0xc2 && lead < 0xe0 && continues(p[at + 1]))
            at += 2;
        else
            break;
    }
    return at;
}

size_t nk_utf8_valid_prefix(const void *data, size_t len)
{
    const uint8_t *p = data;
    size_t at = 0;

    while (at < len) {
        unsigned need;

        if (p[at] < 0x80) {
            at += ascii_prefix(p + at, len - at);
            continue;
        }
        at += common_prefix(p + at, len - at);
        if (at == len || p[at] < 0x80)
            continue;
        if (match(p + at, len - at, &need) != need || need == 0)
            return at;
        at += need;
    }
    return at;
}

bool nk_utf8_valid(const void *data, size_t len)
{
    return nk_utf8_valid_prefix(data, len) == len;
}

size_t nk_utf8_partial_tail(const void *data, size_t len)
{
    const uint8_t *p = data;

    for (size_t n = 1; n <= 3 && n <= len; n++) {
        unsigned need;
        uint8_t lead = p[len - n];

        if (lead < 0x80)
            return 0;
        if (lead >= 0xc0)
            return match(p + len - n, n, &need) == n && need > n ? n : 0;
    }
    return 0;
}

size_t nk_utf8_invalid_len(const void *data, size_t len)
{
    unsigned need;
    unsigned n;

    if (len == 0)
        return 0;
    n = match(data, len, &need);
    if (n == need && need > 0)
        return 0;
    return n ? n : 1;
}

bool nk_utf8_repair(struct nk_buf *out, const void *data, size_t len)
{
    const uint8_t *p = data;
    bool repaired = false;

    while (len > 0) {
        size_t good = nk_utf8_valid_prefix(p, len);
        size_t bad = nk_utf8_invalid_len(p + good, len - good);

        nk_buf_add(out, p, good);
        if (bad > 0) {
            nk_buf_add_str(out, NK_UTF8_REPLACEMENT);
            repaired = true;
        }
        p += good + bad;
        len -= good + bad;
    }
    return repaired;
}
