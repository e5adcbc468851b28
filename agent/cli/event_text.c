#include "cli/event_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/base64.h"

struct cursor {
    const char *p;
    const char *end;
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

static void add_point(struct nk_buf *out, unsigned point)
{
    uint8_t seq[4];
    size_t len;

    if (point < 0x80) {
        nk_buf_add_char(out, (char)point);
        return;
    }
    len = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--) {
        seq[i] = (uint8_t)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    seq[0] = (uint8_t)((0xf0u << (4 - len)) | point);
    nk_buf_add(out, seq, len);
}

/* Behind "\u". */
static int read_unicode(struct cursor *c, struct nk_buf *out)
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
    add_point(out, high);
    return 0;
}

/* Behind a backslash. */
static int read_escape(struct cursor *c, struct nk_buf *out)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    const char *at;

    if (c->p == c->end)
        return -EINVAL;
    if (*c->p == 'u') {
        c->p++;
        return read_unicode(c, out);
    }
    at = *c->p != '\0' ? strchr(from, *c->p) : NULL;
    if (!at)
        return -EINVAL;
    nk_buf_add_char(out, to[at - from]);
    c->p++;
    return 0;
}

static int read_string(struct cursor *c, struct nk_buf *out)
{
    if (!take(c, '"'))
        return -EINVAL;
    for (;;) {
        const char *run = c->p;

        while (c->p < c->end && *c->p != '"' && *c->p != '\\')
            c->p++;
        nk_buf_add(out, run, (size_t)(c->p - run));
        if (c->p == c->end)
            return -EINVAL;
        if (*c->p++ == '"')
            return 0;
        if (read_escape(c, out) < 0)
            return -EINVAL;
    }
}

static int read_base64(struct cursor *c, struct nk_buf *out)
{
    const char *close;
    uint8_t *room;
    size_t got;

    if (!take(c, '"'))
        return -EINVAL;
    close = memchr(c->p, '"', (size_t)(c->end - c->p));
    if (!close)
        return -EINVAL;
    room = nk_buf_reserve(out, (size_t)(close - c->p) / 4 * 3 + 3);
    if (!room)
        return -ENOMEM;
    if (nk_base64_decode(c->p, (size_t)(close - c->p), room, &got) < 0)
        return -EINVAL;
    nk_buf_commit(out, got);
    c->p = close + 1;
    return 0;
}

static int skip_value(struct cursor *c)
{
    struct nk_buf unused = {0};
    int rc;

    skip_space(c);
    if (c->p < c->end && *c->p == '"') {
        rc = read_string(c, &unused);
        nk_buf_fini(&unused);
        return rc;
    }
    while (c->p < c->end && *c->p != ',' && *c->p != '}') {
        if (*c->p == '{' || *c->p == '[')
            return -EINVAL;
        c->p++;
    }
    return 0;
}

static int read_member(struct cursor *c, struct nk_buf *out)
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
        return read_string(c, out);
    if (len == 6 && memcmp(key, "base64", 6) == 0)
        return read_base64(c, out);
    return skip_value(c);
}

int nk_event_text_decode(const char *json, size_t len, struct nk_buf *out)
{
    struct cursor c = {.p = json, .end = json + len};
    int rc;

    if (!take(&c, '{'))
        return -EINVAL;
    if (take(&c, '}'))
        return 0;
    do {
        rc = read_member(&c, out);
        if (rc < 0)
            return rc;
    } while (take(&c, ','));
    if (!take(&c, '}'))
        return -EINVAL;
    skip_space(&c);
    if (c.p != c.end)
        return -EINVAL;
    return out->failed ? -ENOMEM : 0;
}
