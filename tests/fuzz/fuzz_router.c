/* rooms: http base */
/*
 * A path and a query, as the parser lets them through: found, taken apart, decoded, checked.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/attr.h"
#include "http/query.h"
#include "http/router.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct nk_route rows[] = {
    {"GET", "/healthz", "health"},          {"GET", "/v1/a/{id}", "a", .query = {"path", "tail"}},
    {"POST", "/v1/a/{id}/b", "b"},          {"GET", "/v1/a/special", "special", .query = {"path"}},
    {"GET", "/v1/p/{port}/{rest...}", "p"}, {"GET", "/", "root"},
};

static void check_query(struct nk_arena *arena, const struct nk_route *row, const char *query)
{
    struct nk_query q;
    struct nk_err err = {0};

    if (nk_query_parse(arena, query, strlen(query), &q, &err) < 0) {
        if (q.count != 0 || err.code == NK_OK)
            abort();
        return;
    }
    for (size_t i = 0; i < q.count; i++) {
        if (strlen(q.pair[i].value) != q.pair[i].len)
            abort();
    }
    if (nk_query_check(&q, row, &err) == 0 && q.count > NK_ROUTE_QUERIES)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nk_arena arena = {0};
    struct nk_route_match m = {0};
    struct nk_err err = {0};
    char *text = malloc(size + 1);
    char *query;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    query = strchr(text, '?');
    if (query)
        *query++ = '\0';
    if (nk_router_find(rows, NK_COUNT(rows), NK_GET, text, &m, &err) == 0) {
        for (size_t i = 0; i < m.param_count; i++) {
            size_t len = 0;
            const char *value =
                nk_query_decode(&arena, m.params[i].text, m.params[i].len, false, &len, &err);

            if (value && strlen(value) != len)
                abort();
        }
        check_query(&arena, m.route, query ? query : "");
    } else if (err.code != NK_NOT_FOUND && err.code != NK_METHOD_NOT_ALLOWED) {
        abort();
    }
    nk_arena_fini(&arena);
    free(text);
    return 0;
}
