#include "base/json_check.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/json_keys.h"
#include "base/utf8.h"
#include "base/word.h"

#define NUMBER_MAX 63 /* cJSON reads no further */

/* What may come next. */
enum expect { VALUE, VALUE_OR_CLOSE, KEY, KEY_OR_CLOSE, COLON, COMMA_OR_CLOSE, END };

struct level {
    bool object;
    size_t first_key;
};

struct scan {
    const uint8_t *text;
    size_t len, at;
    enum expect expect;
    unsigned depth;
    size_t values;
    const char *why; /* borrowed: static */
    struct level levels[NK_JSON_MAX_DEPTH];
    struct nk_json_keys keys;
};

static int refuse(struct scan *s, size_t at, const char *why)
{
    s->at = at;
    s->why = why;
    return -EINVAL;
}

static void skip_space(struct scan *s)
{
    while (s->at < s->len) {
        uint8_t c = s->text[s->at];

        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            return;
        s->at++;
    }
}

/* Four hexadecimal digits at `at`, or -1. */
static int read_hex4(const struct scan *s, size_t at)
{
    int v = 0;

    if (s->len - at < 4)
        return -1;
    for (size_t i = at; i < at + 4; i++) {
        uint8_t c = s->text[i], lower = c | 0x20;

        if (c >= '0' && c <= '9')
            v = v << 4 | (c - '0');
        else if (lower >= 'a' && lower <= 'f')
            v = v << 4 | (lower - 'a' + 10);
        else
            return -1;
    }
    return v;
}

/* s->at is at the backslash. */
static int scan_unicode_escape(struct scan *s)
{
    size_t start = s->at;
    int unit = read_hex4(s, start + 2);
    int low = -1;

    if (unit < 0)
        return refuse(s, start, "a \\u escape needs four hexadecimal digits");
    if (unit == 0)
        return refuse(s, start, "\\u0000 is not allowed");
    s->at = start + 6;
    if (unit < 0xd800 || unit > 0xdfff)
        return 0;
    if (s->len - s->at >= 6 && s->text[s->at] == '\\' && s->text[s->at + 1] == 'u')
        low = read_hex4(s, s->at + 2);
    if (unit > 0xdbff || low < 0xdc00 || low > 0xdfff)
        return refuse(s, start, "a surrogate stands alone");
    s->at += 6;
    return 0;
}

static int scan_escape(struct scan *s)
{
    if (s->len - s->at < 2)
        return refuse(s, s->len, "the text ends in a string");
    if (s->text[s->at + 1] == 'u')
        return scan_unicode_escape(s);
    if (!memchr("\"\\/bfnrt", s->text[s->at + 1], 8))
        return refuse(s, s->at, "no such escape");
    s->at += 2;
    return 0;
}

static void skip_plain(struct scan *s)
{
    while (s->len - s->at >= 8) {
        uint64_t mask = nk_word_json_special(nk_word_load(s->text + s->at));

        if (mask) {
            s->at += nk_word_first(mask);
            return;
        }
        s->at += 8;
    }
    while (s->at < s->len && !nk_word_json_byte(s->text[s->at]))
        s->at++;
}

/* s->at is at the opening quote, and then behind the closing one. */
static int scan_string(struct scan *s)
{
    s->at++;
    for (;;) {
        skip_plain(s);
        if (s->at == s->len)
            return refuse(s, s->len, "the text ends in a string");
        if (s->text[s->at] == '"')
            break;
        if (s->text[s->at] != '\\')
            return refuse(s, s->at, "a control character in a string");
        if (scan_escape(s) < 0)
            return -EINVAL;
    }
    s->at++;
    return 0;
}

static size_t skip_digits(struct scan *s)
{
    size_t start = s->at;

    while (s->at < s->len && s->text[s->at] >= '0' && s->text[s->at] <= '9')
        s->at++;
    return s->at - start;
}

static bool skip_byte(struct scan *s, char a, char b)
{
    if (s->at == s->len || (s->text[s->at] != (uint8_t)a && s->text[s->at] != (uint8_t)b))
        return false;
    s->at++;
    return true;
}

static int scan_number(struct scan *s)
{
    size_t start = s->at;
    size_t first, digits;

    (void)skip_byte(s, '-', '-');
    first = s->at;
    digits = skip_digits(s);
    if (digits == 0 || (digits > 1 && s->text[first] == '0'))
        return refuse(s, start, "not a number");
    if (skip_byte(s, '.', '.') && skip_digits(s) == 0)
        return refuse(s, start, "not a number");
    if (skip_byte(s, 'e', 'E')) {
        (void)skip_byte(s, '+', '-');
        if (skip_digits(s) == 0)
            return refuse(s, start, "not a number");
    }
    if (s->at - start > NUMBER_MAX)
        return refuse(s, start, "the number is too long");
    return 0;
}

static int scan_word(struct scan *s, const char *word)
{
    size_t n = strlen(word);

    if (s->len - s->at < n || memcmp(s->text + s->at, word, n) != 0)
        return refuse(s, s->at, "a value is expected");
    s->at += n;
    return 0;
}

static int open_level(struct scan *s, bool object)
{
    if (s->depth == NK_JSON_MAX_DEPTH)
        return refuse(s, s->at, "nested too deeply");
    s->levels[s->depth++] = (struct level){object, s->keys.count};
    s->expect = object ? KEY_OR_CLOSE : VALUE_OR_CLOSE;
    s->at++;
    return 0;
}

static void value_is_over(struct scan *s)
{
    s->expect = s->depth ? COMMA_OR_CLOSE : END;
}

static int close_level(struct scan *s)
{
    const struct level *level = &s->levels[--s->depth];
    const uint8_t *twice = NULL;
    int rc = level->object ? nk_json_keys_close(&s->keys, level->first_key, &twice) : 0;

    if (rc == -EEXIST)
        return refuse(s, (size_t)(twice - s->text) - 1, "the key is there twice");
    s->at++;
    value_is_over(s);
    return rc;
}

static int scan_value(struct scan *s)
{
    uint8_t c = s->text[s->at];

    if (++s->values > NK_JSON_MAX_VALUES)
        return refuse(s, s->at, "too many values");
    if (c == '{' || c == '[')
        return open_level(s, c == '{');
    value_is_over(s);
    if (c == '"')
        return scan_string(s);
    if (c == '-' || (c >= '0' && c <= '9'))
        return scan_number(s);
    return scan_word(s, c == 't' ? "true" : c == 'f' ? "false" : "null");
}

static int scan_key(struct scan *s)
{
    size_t start = s->at + 1;

    if (s->text[s->at] != '"')
        return refuse(s, s->at, "a key in quotes is expected");
    if (scan_string(s) < 0)
        return -EINVAL;
    s->expect = COLON;
    return nk_json_keys_add(&s->keys, s->text + start, s->at - 1 - start);
}

static int scan_comma(struct scan *s)
{
    bool object = s->levels[s->depth - 1].object;

    if (s->text[s->at] != ',')
        return refuse(s, s->at, object ? "a comma or } is expected" : "a comma or ] is expected");
    s->at++;
    s->expect = object ? KEY : VALUE;
    return 0;
}

static bool may_close(const struct scan *s)
{
    bool may =
        s->expect == VALUE_OR_CLOSE || s->expect == KEY_OR_CLOSE || s->expect == COMMA_OR_CLOSE;

    return may && s->text[s->at] == (s->levels[s->depth - 1].object ? '}' : ']');
}

/* One step of the grammar; s->at is at a byte that is no space. */
static int scan_step(struct scan *s)
{
    if (may_close(s))
        return close_level(s);
    switch (s->expect) {
    case VALUE:
    case VALUE_OR_CLOSE:
        return scan_value(s);
    case KEY:
    case KEY_OR_CLOSE:
        return scan_key(s);
    case COLON:
        if (s->text[s->at] != ':')
            return refuse(s, s->at, "a colon is expected");
        s->at++;
        s->expect = VALUE;
        return 0;
    case COMMA_OR_CLOSE:
        return scan_comma(s);
    case END:
        break;
    }
    return refuse(s, s->at, "bytes after the value");
}

static int scan_text(struct scan *s)
{
    size_t valid = nk_utf8_valid_prefix(s->text, s->len);

    if (valid < s->len)
        return refuse(s, valid, "not UTF-8");
    for (skip_space(s); s->at < s->len; skip_space(s)) {
        int rc = scan_step(s);

        if (rc < 0)
            return rc;
    }
    return s->expect == END ? 0 : refuse(s, s->at, "the text ends too early");
}

int nk_json_check(const void *text, size_t len, const char **out_why, size_t *out_at)
{
    struct scan s;
    int rc;

    s.text = text;
    s.len = len;
    s.at = 0;
    s.expect = VALUE;
    s.depth = 0;
    s.values = 0;
    s.why = NULL;
    nk_json_keys_init(&s.keys);
    rc = scan_text(&s);
    nk_json_keys_fini(&s.keys);
    if (rc == -EINVAL) {
        *out_why = s.why;
        *out_at = s.at;
    }
    return rc;
}
