#include "base/json_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "base/word.h"

static void begin(struct nk_json_out *o, const char *key)
{
    if (o->comma)
        nk_buf_add_char(o->buf, ',');
    o->comma = true;
    if (!key)
        return;
    nk_buf_add_char(o->buf, '"');
    nk_json_out_escape(o->buf, key, strlen(key));
    nk_buf_add(o->buf, "\":", 2);
}

void nk_json_out_open(struct nk_json_out *o, const char *key, char bracket)
{
    begin(o, key);
    nk_buf_add_char(o->buf, bracket);
    o->comma = false;
}

void nk_json_out_close(struct nk_json_out *o, char bracket)
{
    nk_buf_add_char(o->buf, bracket);
    o->comma = true;
}

void nk_json_out_str(struct nk_json_out *o, const char *key, const char *s)
{
    if (s)
        nk_json_out_strn(o, key, s, strlen(s));
    else
        nk_json_out_null(o, key);
}

void nk_json_out_strn(struct nk_json_out *o, const char *key, const void *s, size_t len)
{
    begin(o, key);
    nk_buf_add_char(o->buf, '"');
    nk_json_out_escape(o->buf, s, len);
    nk_buf_add_char(o->buf, '"');
}

void nk_json_out_u64(struct nk_json_out *o, const char *key, uint64_t v)
{
    begin(o, key);
    nk_buf_add_u64(o->buf, v);
}

void nk_json_out_i64(struct nk_json_out *o, const char *key, int64_t v)
{
    begin(o, key);
    if (v < 0)
        nk_buf_add_char(o->buf, '-');
    nk_buf_add_u64(o->buf, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void nk_json_out_real(struct nk_json_out *o, const char *key, double v)
{
    char text[32];

    if (!isfinite(v)) { /* JSON has no word for it */
        nk_json_out_null(o, key);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    begin(o, key);
    nk_buf_add_str(o->buf, text);
}

void nk_json_out_bool(struct nk_json_out *o, const char *key, bool v)
{
    begin(o, key);
    nk_buf_add_str(o->buf, v ? "true" : "false");
}

void nk_json_out_null(struct nk_json_out *o, const char *key)
{
    begin(o, key);
    nk_buf_add(o->buf, "null", 4);
}

void nk_json_out_base64(struct nk_json_out *o, const char *key, const void *data, size_t len)
{
    begin(o, key);
    nk_buf_add_char(o->buf, '"');
    nk_base64_encode(o->buf, data, len);
    nk_buf_add_char(o->buf, '"');
}

void nk_json_out_time(struct nk_json_out *o, const char *key, int64_t wall_ms)
{
    char text[NK_CLOCK_TEXT];

    if (wall_ms == 0) {
        nk_json_out_null(o, key);
        return;
    }
    nk_clock_format(wall_ms, text);
    nk_json_out_strn(o, key, text, sizeof text - 1);
}

void nk_json_out_raw(struct nk_json_out *o, const char *key, const void *json, size_t len)
{
    begin(o, key);
    nk_buf_add(o->buf, json, len);
}

/* Returns whether invalid bytes were replaced. */
static bool escape_repaired(struct nk_buf *out, const uint8_t *p, size_t len)
{
    bool repaired = false;

    while (len > 0) {
        size_t good = nk_utf8_valid_prefix(p, len);
        size_t bad = nk_utf8_invalid_len(p + good, len - good);

        nk_json_out_escape(out, p, good);
        if (bad > 0) {
            nk_buf_add_str(out, NK_UTF8_REPLACEMENT);
            repaired = true;
        }
        p += good + bad;
        len -= good + bad;
    }
    return repaired;
}

void nk_json_out_bytes(struct nk_json_out *o, const char *key, const void *data, size_t len)
{
    bool repaired;

    begin(o, key);
    nk_buf_add_char(o->buf, '"');
    repaired = escape_repaired(o->buf, data, len);
    nk_buf_add_char(o->buf, '"');
    if (!repaired)
        return;
    nk_buf_add(o->buf, ",\"", 2);
    nk_json_out_escape(o->buf, key, strlen(key));
    nk_buf_add_str(o->buf, "_base64\":\"");
    nk_base64_encode(o->buf, data, len);
    nk_buf_add_char(o->buf, '"');
}

/* Writes the escape of one byte, at most six bytes long. */
static size_t escape_byte(uint8_t c, uint8_t *to)
{
    static const char hex[] = "0123456789abcdef";
    static const char shorts[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

    to[0] = '\\';
    if (c >= 0x20 || shorts[c]) {
        to[1] = c >= 0x20 ? c : (uint8_t)shorts[c];
        return 2;
    }
    memcpy(to + 1, "u00", 3);
    to[4] = (uint8_t)hex[c >> 4];
    to[5] = (uint8_t)hex[c & 15];
    return 6;
}

/* Copies up to the first byte that needs an escape, and returns how many; `to` has room for all. */
static size_t copy_plain(const uint8_t *p, size_t len, uint8_t *to)
{
    size_t at = 0;

    while (len - at >= 8) {
        uint64_t mask = nk_word_json_special(nk_word_load(p + at));

        memcpy(to + at, p + at, 8);
        if (mask)
            return at + nk_word_first(mask);
        at += 8;
    }
    for (; at < len && !nk_word_json_byte(p[at]); at++)
        to[at] = p[at];
    return at;
}

/* Room is asked for the bytes that are left, never for the worst case: a bounded buffer must not
 * refuse what would have fitted. */
void nk_json_out_escape(struct nk_buf *out, const void *data, size_t len)
{
    const uint8_t *p = data;

    while (len > 0) {
        uint8_t *to = nk_buf_reserve(out, len);
        uint8_t escaped[6];
        size_t n;

        if (!to)
            return;
        n = copy_plain(p, len, to);
        nk_buf_commit(out, n);
        p += n;
        len -= n;
        if (len > 0 && nk_word_json_byte(*p)) {
            nk_buf_add(out, escaped, escape_byte(*p, escaped));
            p++;
            len--;
        }
    }
}
