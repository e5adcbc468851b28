#include "base/log_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"

#define TAIL_ROOM 64 /* "cut", "dropped" with its twenty digits, the end */

static const char *const level_names[] = {"debug", "info", "warn", "error"};

/* After the first bytes that do not fit nothing is added, until the field is taken back. */
static void put(struct nk_log_line *l, const char *data, size_t n)
{
    if (n > l->room - l->len)
        l->full = true;
    if (l->full)
        return;
    memcpy(l->text + l->len, data, n);
    l->len += n;
}

static void put_str(struct nk_log_line *l, const char *s)
{
    put(l, s, strlen(s));
}

/* One character, escaped where it could end the line, the string, or steer a terminal. Returns its
 * length. */
static size_t put_char(struct nk_log_line *l, const uint8_t *p, size_t len)
{
    size_t n = len < 4 ? len : 4;
    size_t bad = nk_utf8_invalid_len(p, n);
    unsigned c = p[0] == 0xc2 && bad == 0 ? p[1] : p[0]; /* U+0080 to U+00BF are C2 80 to C2 BF */
    char escape[8];

    if (bad > 0) {
        put_str(l, NK_UTF8_REPLACEMENT);
        return bad;
    }
    if (c < 0x20 || (c >= 0x7f && c < 0xa0 && p[0] <= 0xc2)) {
        (void)snprintf(escape, sizeof escape, "\\u%04x", c);
        put_str(l, escape);
        return p[0] == 0xc2 ? 2 : 1;
    }
    if (c == '"' || c == '\\')
        put(l, "\\", 1);
    n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    put(l, (const char *)p, n);
    return n;
}

static void put_escaped(struct nk_log_line *l, const char *s)
{
    const uint8_t *p = (const uint8_t *)s;
    size_t len = strnlen(s, NK_LOG_VALUE_MAX + 1);

    if (len > NK_LOG_VALUE_MAX) {
        len = NK_LOG_VALUE_MAX - nk_utf8_partial_tail(s, NK_LOG_VALUE_MAX);
        l->cut = true;
    }
    while (len > 0) {
        size_t n = put_char(l, p, len);

        p += n;
        len -= n;
    }
}

static void put_key(struct nk_log_line *l, const char *key)
{
    put_str(l, l->json ? ",\"" : " ");
    put_escaped(l, key);
    put_str(l, l->json ? "\":" : "=");
}

static void put_string(struct nk_log_line *l, const char *key, const char *value)
{
    put_key(l, key);
    put(l, "\"", 1);
    put_escaped(l, value);
    put(l, "\"", 1);
}

static void put_number(struct nk_log_line *l, const char *key, int64_t value)
{
    char digits[24];

    put_key(l, key);
    (void)snprintf(digits, sizeof digits, "%" PRId64, value);
    put_str(l, digits);
}

void nk_log_line_begin(struct nk_log_line *l, bool json, enum nk_log_level level, int64_t wall_ms)
{
    char time[NK_CLOCK_TEXT];

    l->json = json;
    l->cut = false;
    l->full = false;
    l->len = 0;
    l->room = sizeof l->text - TAIL_ROOM;
    nk_clock_format(wall_ms, time);
    put_str(l, json ? "{\"time\":\"" : "");
    put_str(l, time);
    put_str(l, json ? "\",\"level\":\"" : " ");
    put_str(l, level_names[level]);
    put_str(l, json ? "\"" : "");
}

void nk_log_line_head(struct nk_log_line *l, const char *event, const char *msg)
{
    if (l->json) {
        put_string(l, "event", event);
        if (msg)
            put_string(l, "msg", msg);
        return;
    }
    put(l, " ", 1);
    put_escaped(l, event);
    if (!msg)
        return;
    put_str(l, ": ");
    put_escaped(l, msg);
}

void nk_log_line_field(struct nk_log_line *l, const struct nk_log_field *field)
{
    size_t before = l->len;

    if (field->str)
        put_string(l, field->key, field->str);
    else
        put_number(l, field->key, field->num);
    if (!l->full)
        return;
    l->full = false;
    l->cut = true;
    l->len = before;
}

void nk_log_line_end(struct nk_log_line *l, uint64_t dropped)
{
    l->room = sizeof l->text;
    l->full = false;
    if (l->cut)
        put_number(l, "cut", 1);
    if (dropped > 0)
        put_number(l, "dropped", (int64_t)dropped);
    put_str(l, l->json ? "}\n" : "\n");
}
