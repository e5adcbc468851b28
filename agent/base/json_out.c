#include "base/json_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "base/word.h"

#define STEP NK_WORD_STEP

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

/* What follows the backslash in the escape of a byte; 0: it needs none. */
static const uint8_t escapes[256] = {
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'b',         't',           'n', 'u',
    'f', 'r', 'u', 'u', 'u', 'u', 'u', 'u', 'u',         'u',           'u', 'u',
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', ['"'] = '"', ['\\'] = '\\',
};

/* Bytes of which some need an escape; `to` has room for six times as many. Both bytes of a short
 * escape are always written, and counted only when they are one: a branch would be guessed wrong at
 * every line end. Returns the end of what was written. */
static uint8_t *escape_bytes(const uint8_t *p, size_t len, uint8_t *to)
{
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        uint8_t c = p[i], escape = escapes[c];

        to[0] = escape ? '\\' : c;
        to[1] = escape;
        to += escape ? 2 : 1;
        if (escape == 'u') {
            to[0] = '0';
            to[1] = '0';
            to[2] = (uint8_t)hex[c >> 4];
            to[3] = (uint8_t)hex[c & 15];
            to += 4;
        }
    }
    return to;
}

/* A step of bytes, up to behind the first that needs an escape; where several do, all of it. */
static size_t escape_step(const uint8_t *p, uint8_t **to)
{
    uint64_t low = nk_word_json_special(nk_word_load(p));
    uint64_t high = nk_word_json_special(nk_word_load(p + 8));
    uint64_t more = low ? (low & (low - 1)) | high : high & (high - 1);
    size_t plain;

    memcpy(*to, p, STEP);
    if (!(low | high)) {
        *to += STEP;
        return STEP;
    }
    plain = low ? nk_word_first(low) : 8 + nk_word_first(high);
    *to = escape_bytes(p + plain, more ? STEP - plain : 1, *to + plain);
    return more ? STEP : plain + 1;
}

/* As much as the room surely takes. Returns how many bytes were read. */
static size_t escape_some(const uint8_t *p, size_t len, uint8_t *to, size_t room, size_t *out_used)
{
    uint8_t *start = to;
    size_t at = 0;

    while (at < len && room - (size_t)(to - start) >= STEP * 6) {
        if (len - at >= STEP) {
            at += escape_step(p + at, &to);
            continue;
        }
        to = escape_bytes(p + at, len - at, to);
        at = len;
    }
    *out_used = (size_t)(to - start);
    return at;
}

/* Room for `len` bytes and some escapes; where the bound is near, for no more than is surely needed,
 * so that nothing is refused that would have fitted. */
static uint8_t *make_room(struct nk_buf *out, size_t len)
{
    size_t ample = len + len / 8 + STEP * 6;

    if (out->max && ample > out->max - nk_buf_left(out))
        ample = len;
    return nk_buf_reserve(out, ample);
}

void nk_json_out_escape(struct nk_buf *out, const void *data, size_t len)
{
    const uint8_t *p = data;

    while (len > 0) {
        uint8_t *to = make_room(out, len);
        uint8_t one[6];
        size_t n, used;

        if (!to)
            return;
        n = escape_some(p, len, to, out->cap - out->len, &used);
        nk_buf_commit(out, used);
        if (n == 0) {
            nk_buf_add(out, one, (size_t)(escape_bytes(p, 1, one) - one));
            n = 1;
        }
        p += n;
        len -= n;
    }
}
