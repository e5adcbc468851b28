/* rooms: http base */
/*
 * The request parser: any bytes, cut anywhere, give one verdict.
 *
 * The first byte chooses the size of the pieces; the rest is fed whole and in these pieces.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "http/parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct verdict {
    enum nk_parse end;
    enum nk_code code;
    size_t used;
    struct nk_buf body;
};

static const struct nk_parser_limits limits = {
    .header_max = 1024,
    .header_lines_max = 8,
    .url_max = 64,
    .chunk_line_max = 16,
};

static void check_head(const struct nk_head *h)
{
    size_t touched = strlen(h->path) + strlen(h->query);

    if (h->query_len != strlen(h->query) || h->field_count > limits.header_lines_max)
        abort();
    if (strstr(h->path, "%00") || strstr(h->query, "%00"))
        abort();
    if (nk_head_field(h, "no such field", 0) || touched > limits.header_max)
        abort();
}

/* A copy of its own for each piece, so that reading beyond it is seen. */
static enum nk_parse feed(struct nk_parser *p, const uint8_t *data, size_t size, struct verdict *v)
{
    uint8_t *copy = malloc(size + 1);
    struct nk_parser_input in = {copy, size, NULL, 0};
    struct nk_err err = {0};
    enum nk_parse got = NK_PARSE_HEAD;

    if (!copy)
        abort();
    memcpy(copy, data, size);
    while (got != NK_PARSE_MORE && got != NK_PARSE_END && got != NK_PARSE_FAIL) {
        got = nk_parser_step(p, &in, &err);
        if (got == NK_PARSE_HEAD)
            check_head(nk_parser_head(p));
        if (got == NK_PARSE_BODY)
            nk_buf_add(&v->body, in.body, in.body_len);
    }
    if (got == NK_PARSE_MORE && in.len > 0)
        abort();
    v->used += size - in.len;
    v->code = err.code;
    free(copy);
    return got;
}

static void run(const uint8_t *data, size_t size, size_t piece, struct verdict *v)
{
    struct nk_arena arena = {0};
    struct nk_parser *p = nk_parser_new(&arena, &limits);

    if (!p)
        abort();
    v->end = NK_PARSE_MORE;
    for (size_t at = 0; at < size && v->end == NK_PARSE_MORE; at += piece)
        v->end = feed(p, data + at, size - at < piece ? size - at : piece, v);
    if (v->end == NK_PARSE_FAIL)
        v->used = 0; /* how far a bad request was read is nobody's business */
    nk_parser_free(p);
    nk_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct verdict whole = {0};
    struct verdict cut = {0};

    if (size < 2)
        return 0;
    run(data + 1, size - 1, size, &whole);
    run(data + 1, size - 1, (size_t)data[0] % 16 + 1, &cut);
    if (whole.end != cut.end || whole.code != cut.code || whole.used != cut.used ||
        nk_buf_left(&whole.body) != nk_buf_left(&cut.body) ||
        (nk_buf_left(&cut.body) > 0 &&
         memcmp(nk_buf_front(&whole.body), nk_buf_front(&cut.body), nk_buf_left(&cut.body)) != 0))
        abort();
    nk_buf_fini(&whole.body);
    nk_buf_fini(&cut.body);
    return 0;
}
