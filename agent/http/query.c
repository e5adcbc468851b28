#include "http/query.h"

#include <string.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The byte that `%XY` stands for, or -1. NUL counts as wrong: no string of ours may hold one. */
static int escaped_byte(const char *text, size_t left)
{
    if (left < 3)
        return -1;
    int high = hex_value(text[1]);
    int low = hex_value(text[2]);

    if (high < 0 || low < 0 || high + low == 0)
        return -1;
    return high * 16 + low;
}

char *nk_query_decode(struct nk_arena *arena, const char *text, size_t len, bool plus,
                      size_t *out_len, struct nk_err *err)
{
    char *out = nk_arena_alloc(arena, len + 1);
    size_t n = 0;

    if (!out) {
        nk_fail(err, NK_OVERLOADED, "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < len; i++) {
        int c = (unsigned char)text[i];

        if (c == '%') {
            c = escaped_byte(text + i, len - i);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (c <= 0) {
            nk_fail(err, NK_BAD_REQUEST, "the URL holds a bad escape or a NUL");
            return NULL;
        }
        out[n++] = (char)c;
    }
    out[n] = '\0';
    *out_len = n;
    return out;
}

static int add_pair(struct nk_arena *arena, const char *text, size_t len, struct nk_query *q,
                    struct nk_err *err)
{
    const char *equals = memchr(text, '=', len);
    size_t name_len = equals ? (size_t)(equals - text) : len;
    const char *value = equals ? equals + 1 : text + len;
    size_t ignored = 0;

    q->pair[q->count].name = nk_query_decode(arena, text, name_len, true, &ignored, err);
    q->pair[q->count].value = nk_query_decode(arena, value, (size_t)(text + len - value), true,
                                              &q->pair[q->count].len, err);
    if (!q->pair[q->count].name || !q->pair[q->count].value)
        return -1;
    q->count++;
    return 0;
}

int nk_query_parse(struct nk_arena *arena, const char *text, size_t len, struct nk_query *out,
                   struct nk_err *err)
{
    const char *end = text + len;

    out->count = 0;
    out->more = false;
    while (text < end && out->count < NK_QUERY_MAX) {
        const char *and = memchr(text, '&', (size_t)(end - text));
        const char *stop = and? and : end;

        if (stop > text && add_pair(arena, text, (size_t)(stop - text), out, err) < 0) {
            out->count = 0;
            return -1;
        }
        text = stop + 1;
    }
    out->more = text < end;
    return 0;
}

static bool may_repeat(const struct nk_route *route, const char *name)
{
    return route->query_many && strcmp(route->query_many, name) == 0;
}

static bool known(const struct nk_route *route, const char *name)
{
    if (route->auth == NK_AUTH_WS_TICKET && strcmp(name, "token") == 0)
        return true;
    for (size_t i = 0; i < NK_ROUTE_QUERIES && route->query[i]; i++) {
        if (strcmp(route->query[i], name) == 0)
            return true;
    }
    return false;
}

int nk_query_check(const struct nk_query *q, const struct nk_route *route, struct nk_err *err)
{
    for (size_t i = 0; i < q->count; i++) {
        if (!known(route, q->pair[i].name))
            return nk_fail(err, NK_BAD_REQUEST, "unknown query parameter: %.100s", q->pair[i].name);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(q->pair[k].name, q->pair[i].name) == 0 &&
                !may_repeat(route, q->pair[i].name))
                return nk_fail(err, NK_BAD_REQUEST, "query parameter given twice: %.100s",
                               q->pair[i].name);
        }
    }
    if (q->more)
        return nk_fail(err, NK_BAD_REQUEST, "more than %d query parameters", NK_QUERY_MAX);
    return 0;
}
