#include "http/router.h"

#include <string.h>

#include "base/attr.h"

static const char *const method_names[NK_METHOD_COUNT] = {
    [NK_GET] = "GET",     [NK_HEAD] = "HEAD",     [NK_POST] = "POST",       [NK_PUT] = "PUT",
    [NK_PATCH] = "PATCH", [NK_DELETE] = "DELETE", [NK_OPTIONS] = "OPTIONS",
};

/* One segment of a pattern or a path: from after a slash to the next one. */
struct segment {
    const char *text;
    size_t len;
};

static struct segment next_segment(const char **at, const char *end)
{
    const char *start = *at + 1;
    const char *slash = start < end ? memchr(start, '/', (size_t)(end - start)) : NULL;

    *at = slash ? slash : end;
    return (struct segment){start, (size_t)(*at - start)};
}

static void keep_param(struct nk_route_match *m, struct segment name, const char *text, size_t len)
{
    if (m->param_count == NK_ROUTER_PARAMS)
        return;
    m->params[m->param_count].name = name.text + 1;
    m->params[m->param_count].name_len = name.len - 2;
    m->params[m->param_count].text = text;
    m->params[m->param_count].len = len;
    m->param_count++;
}

static bool is_rest(struct segment s)
{
    return s.len > 5 && s.text[0] == '{' && memcmp(s.text + s.len - 4, "...}", 4) == 0;
}

/* Fills the parameters of `out`. *out_rank: a bit for each literal segment, the first one highest,
 * so that the more literal of two patterns is the greater one. */
static bool match(const char *pattern, const char *path, struct nk_route_match *out,
                  uint32_t *out_rank)
{
    const char *pattern_end = pattern + strlen(pattern);
    const char *path_end = path + strlen(path);
    uint32_t bit = 1u << 31;

    *out_rank = 0;
    out->param_count = 0;
    while (pattern < pattern_end && path < path_end) {
        struct segment want = next_segment(&pattern, pattern_end);
        const char *start = path + 1;

        if (is_rest(want)) {
            want.len -= 3;
            keep_param(out, want, start, (size_t)(path_end - start));
            return true;
        }
        struct segment have = next_segment(&path, path_end);

        if (want.len > 2 && want.text[0] == '{') {
            if (have.len == 0)
                return false;
            keep_param(out, want, have.text, have.len);
        } else {
            if (want.len != have.len || memcmp(want.text, have.text, have.len) != 0)
                return false;
            *out_rank |= bit;
        }
        bit >>= 1;
    }
    return pattern == pattern_end && path == path_end;
}

#define ANY_METHOD NK_METHOD_COUNT

static int method_of(const char *name)
{
    if (strcmp(name, "ANY") == 0)
        return ANY_METHOD;
    for (int m = 0; m < NK_METHOD_COUNT; m++) {
        if (strcmp(method_names[m], name) == 0)
            return m;
    }
    return -1;
}

/* How well a row's method answers the one asked: its own before GET for HEAD, 0 not at all. */
static int method_fits(int row, enum nk_method asked)
{
    if (row == ANY_METHOD)
        return asked < NK_METHOD_COUNT;
    if (row == (int)asked)
        return 2;
    return asked == NK_HEAD && row == NK_GET ? 1 : 0;
}

static uint32_t allow_bits(int method)
{
    uint32_t bits = method < 0 ? 0 : 1u << method;

    if (method == ANY_METHOD)
        return bits - 1;

    return method == NK_GET ? bits | 1u << NK_HEAD : bits;
}

int nk_router_find(const struct nk_route *routes, size_t count, enum nk_method method,
                   const char *path, struct nk_route_match *out, struct nk_err *err)
{
    struct nk_route_match best = {0};
    uint64_t best_score = 0;
    uint32_t allow = 0;

    if (path[0] != '/')
        return nk_fail(err, NK_NOT_FOUND, "no such path");
    for (size_t i = 0; i < count; i++) {
        struct nk_route_match m = {.route = &routes[i]};
        uint32_t rank = 0;

        if (!match(routes[i].path, path, &m, &rank))
            continue;
        int row = method_of(routes[i].method);
        int fits = method_fits(row, method);
        uint64_t score = (uint64_t)rank * 4 + (uint64_t)fits;

        allow |= allow_bits(row);
        if (fits && (!best.route || score > best_score)) {
            best = m;
            best_score = score;
        }
    }
    if (best.route) {
        *out = best;
        return 0;
    }
    if (!allow)
        return nk_fail(err, NK_NOT_FOUND, "no such path: %.128s", path);
    nk_fail(err, NK_METHOD_NOT_ALLOWED, "this path does not take %s",
            nk_router_method_name(method));
    if (err)
        err->value = allow;
    out->allow = allow;
    return -1;
}

const char *nk_router_method_name(enum nk_method m)
{
    return (unsigned)m < NK_METHOD_COUNT ? method_names[m] : "this method";
}
