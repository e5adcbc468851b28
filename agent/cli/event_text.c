#include "cli/event_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/base64.h"

struct cursor {
    const char *p;
    const char *end;
    uint8_t *out; /* has room for as many bytes as are left: decoding never makes more */
};

static void skip_space(struct cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
        c->p++;
}

static bool take(struct cursor *c, char expected)
{
    skip_space(c);
    if (c->p == c->end || *c->p != expected)
        return false;
    c->p++;
    return true;
}

static int read_hex4(struct cursor *c, unsigned *out)
{
    unsigned value = 0;

    if (c->end - c->p < 4)
        return -EINVAL;
    for (int i = 0; i < 4; i++) {
        char ch = *c->p++;
        unsigned digit;

        if (ch >= '0' && ch <= '9')
            digit = (unsigned)(ch - '0');
        else if (ch >= 'a' && ch <= 'f')
            digit = (unsigned)(ch - 'a') + 10;
        else if (ch >= 'A' && ch <= 'F')
            digit = (unsigned)(ch - 'A') + 10;
        else
            return -EINVAL;
        value = value * 16 + digit;
    }
    *out = value;
    return 0;
}

static void add_point(struct cursor *c, unsigned point)
{
    size_t len = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

    for (size_t i = len - 1; i > 0; i--) {
        c->out[i] = (uint8_t)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    c->out[0] = (uint8_t)(len == 1 ? point : (0xf0u << (4 - len)) | point);
    c->out += len;
}

/* Behind "\u". */
static int read_unicode(struct cursor *c)
{
    unsigned high, low;

    if (read_hex4(c, &high) < 0 || (high >= 0xdc00 && high < 0xe000))
        return -EINVAL;
    if (high >= 0xd800 && high < 0xdc00) {
        if (c->end - c->p < 2 || c->p[0] != '\\' || c->p[1] != 'u')
            return -EINVAL;
        c->p += 2;
        if (read_hex4(c, &low) < 0 || low < 0xdc00 || low >= 0xe000)
            return -EINVAL;
        high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    }
    add_point(c, high);
    return 0;
}

/* Behind a backslash. */
static int read_escape(struct cursor *c)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    const char *at;

    if (c->p == c->end)
        return -EINVAL;
    if (*c->p == 'u') {
        c->p++;
        return read_unicode(c);
    }
    at = memchr(from, *c->p, sizeof from - 1);
    if (!at)
        return -EINVAL;
    *c->out++ = (uint8_t)to[at - from];
    c->p++;
    return 0;
}

static int read_string(struct cursor *c)
{
    if (!take(c, '"'))
        return -EINVAL;
    while (c->p < c->end) {
        char ch = *c->p++;

        if (ch == '"')
            return 0;
        if (ch != '\\')
            *c->out++ = (uint8_t)ch;
        else if (read_escape(c) < 0)
            return -EINVAL;
    }
    return -EINVAL;
}

static int read_base64(struct cursor *c)
{
    const char *close;
    size_t got;

    if (!take(c, '"'))
        return -EINVAL;
    close = memchr(c->p, '"', (size_t)(c->end - c->p));
    if (!close || nk_base64_decode(c->p, (size_t)(close - c->p), c->out, &got) < 0)
        return -EINVAL;
    c->out += got;
    c->p = close + 1;
    return 0;
}

static int skip_value(struct cursor *c)
{
    uint8_t *out = c->out;
    int rc;

    skip_space(c);
    if (c->p < c->end && *c->p == '"') {
        rc = read_string(c);
        c->out = out;
        return rc;
    }
    while (c->p < c->end && *c->p != ',' && *c->p != '}') {
        if (*c->p == '{' || *c->p == '[')
            return -EINVAL;
        c->p++;
    }
    return 0;
}

static int read_member(struct cursor *c)
{
    const char *key, *close;
    size_t len;

    if (!take(c, '"'))
        return -EINVAL;
    key = c->p;
    close = memchr(key, '"', (size_t)(c->end - key));
    if (!close)
        return -EINVAL;
    len = (size_t)(close - key);
    c->p = close + 1;
    if (!take(c, ':'))
        return -EINVAL;
    if (len == 4 && memcmp(key, "text", 4) == 0)
        return read_string(c);
    if (len == 6 && memcmp(key, "base64", 6) == 0)
        return read_base64(c);
    return skip_value(c);
}

static int read_object(struct cursor *c)
{
    if (!take(c, '{'))
        return -EINVAL;
    if (!take(c, '}')) {
        do {
            if (read_member(c) < 0)
                return -EINVAL;
        } while (take(c, ','));
        if (!take(c, '}'))
            return -EINVAL;
    }
    skip_space(c);
    return c->p == c->end ? 0 : -EINVAL;
}

int nk_event_text_decode(const char *json, size_t len, struct nk_buf *out)
{
    uint8_t *room = nk_buf_reserve(out, len > 0 ? len : 1);
    struct cursor c = {.p = json, .end = json + len, .out = room};

    if (!room)
        return -ENOMEM;
    if (read_object(&c) < 0)
        return -EINVAL;
    nk_buf_commit(out, (size_t)(c.out - room));
    return 0;
}
