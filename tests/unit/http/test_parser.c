#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "http/parser.h"
#include "toy_vectors.h"

static const struct nk_parser_limits limits = {
    .header_max = 16384,
    .header_lines_max = 100,
    .url_max = 8192,
    .chunk_line_max = 256,
};

/* All that a parser can tell of one request. */
struct verdict {
    enum nk_parse end;
    enum nk_code code;
    size_t used; /* bytes of a request that is complete */
    enum nk_method method;
    struct nk_buf body;
};

struct run {
    struct nk_arena arena;
    struct nk_parser *parser;
    struct verdict v;
    size_t used;
};

static void run_init(struct run *r)
{
    *r = (struct run){.v.end = NK_PARSE_MORE};
    r->parser = nk_parser_new(&r->arena, &limits);
    assert_non_null(r->parser);
}

static void run_fini(struct run *r)
{
    nk_parser_free(r->parser);
    nk_arena_fini(&r->arena);
    nk_buf_fini(&r->v.body);
}

/* The bytes are in a block of their own, so that a sanitizer sees what is read beyond them. */
static void run_feed(struct run *r, const char *bytes, size_t len)
{
    uint8_t *copy = malloc(len + 1);
    struct nk_parser_input in = {copy + 1, len, NULL, 0};
    struct nk_err err = {0};
    enum nk_parse got = NK_PARSE_HEAD;

    assert_non_null(copy);
    memcpy(copy + 1, bytes, len);
    while (r->v.end == NK_PARSE_MORE && got != NK_PARSE_MORE) {
        got = nk_parser_step(r->parser, &in, &err);
        if (got == NK_PARSE_BODY)
            nk_buf_add(&r->v.body, in.body, in.body_len);
        if (got == NK_PARSE_END || got == NK_PARSE_FAIL)
            r->v.end = got;
    }
    r->used += len - in.len;
    r->v.code = err.code;
    r->v.method = nk_parser_head(r->parser)->method;
    r->v.used = r->v.end == NK_PARSE_END ? r->used : 0;
    free(copy);
}

static void assert_same(const struct toy_vector *v, const struct verdict *a,
                        const struct verdict *b)
{
    if (a->end != b->end || a->code != b->code || a->used != b->used ||
        nk_buf_left(&a->body) != nk_buf_left(&b->body))
        fail_msg("%s: depends on how it was cut", v->name);
    if (nk_buf_left(&a->body) > 0)
        assert_memory_equal(nk_buf_front(&a->body), nk_buf_front(&b->body), nk_buf_left(&a->body));
}

static void check_cuts(const struct toy_vector *v)
{
    struct run whole;
    struct run bytes;
    size_t step = v->len > 600 ? 61 : 1;

    run_init(&whole);
    run_feed(&whole, v->bytes, v->len);
    run_init(&bytes);
    for (size_t i = 0; i < v->len && bytes.v.end == NK_PARSE_MORE; i++)
        run_feed(&bytes, v->bytes + i, 1);
    assert_same(v, &whole.v, &bytes.v);
    run_fini(&bytes);
    for (size_t cut = 1; cut < v->len; cut += step) {
        struct run two;

        run_init(&two);
        run_feed(&two, v->bytes, cut);
        if (two.v.end == NK_PARSE_MORE)
            run_feed(&two, v->bytes + cut, v->len - cut);
        assert_same(v, &whole.v, &two.v);
        run_fini(&two);
    }
    run_fini(&whole);
}

static void the_verdict_does_not_depend_on_how_the_bytes_were_cut(void **state)
{
    size_t count = 0;
    struct toy_vector *vectors = toy_vectors_load(TOY_DIR "/vectors.txt", &count);

    (void)state;
    assert_non_null(vectors);
    for (size_t i = 0; i < count; i++)
        check_cuts(&vectors[i]);
    toy_vectors_free(vectors, count);
}

static void read_head(struct run *r, const char *text)
{
    run_init(r);
    run_feed(r, text, strlen(text));
    assert_int_equal(r->v.end, NK_PARSE_END);
}

static void a_head_is_taken_apart(void **state)
{
    struct run r;
    const struct nk_head *h;

    (void)state;
    read_head(&r, "GET /a/b?c=d?e HTTP/1.1\r\nHost: x:80\r\nA:  b c\t \r\nEmpty:\r\na: 2\r\n\r\n");
    h = nk_parser_head(r.parser);
    assert_int_equal(h->method, NK_GET);
    assert_string_equal(h->path, "/a/b");
    assert_string_equal(h->query, "c=d?e");
    assert_null(h->authority);
    assert_int_equal(h->field_count, 4);
    assert_string_equal(nk_head_field(h, "HOST", 0), "x:80");
    assert_string_equal(nk_head_field(h, "a", 0), "b c");
    assert_string_equal(nk_head_field(h, "a", 1), "2");
    assert_null(nk_head_field(h, "a", 2));
    assert_string_equal(nk_head_field(h, "empty", 0), "");
    assert_true(h->keep_alive);
    assert_false(h->http10);
    assert_false(h->has_body);
    assert_int_equal(h->content_length, -1);
    run_fini(&r);
}

static void an_absolute_target_names_the_host(void **state)
{
    struct run r;

    (void)state;
    read_head(&r, "GET HTTP://other:8099/a?b=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_string_equal(nk_parser_head(r.parser)->authority, "other:8099");
    assert_string_equal(nk_parser_head(r.parser)->path, "/a");
    assert_string_equal(nk_parser_head(r.parser)->query, "b=1");
    run_fini(&r);
    read_head(&r, "GET https://other?b=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_string_equal(nk_parser_head(r.parser)->authority, "other");
    assert_string_equal(nk_parser_head(r.parser)->path, "/");
    assert_string_equal(nk_parser_head(r.parser)->query, "b=1");
    run_fini(&r);
    read_head(&r, "GET http://other HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_string_equal(nk_parser_head(r.parser)->authority, "other");
    assert_string_equal(nk_parser_head(r.parser)->path, "/");
    run_fini(&r);
}

static void it_stops_behind_the_last_byte_of_the_request(void **state)
{
    static const char first[] = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                                "chunked\r\n\r\n3\r\nabc\r\n0\r\nT: 1\r\n\r\n";
    static const char both[] = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                               "chunked\r\n\r\n3\r\nabc\r\n0\r\nT: 1\r\n\r\n"
                               "GET / HTTP/1.1\r\n";
    struct run r;

    (void)state;
    read_head(&r, both);
    assert_int_equal(r.v.used, sizeof first - 1);
    assert_int_equal(nk_buf_left(&r.v.body), 3);
    assert_memory_equal(nk_buf_front(&r.v.body), "abc", 3);
    run_fini(&r);
}

static void fields_of_a_trailer_are_no_headers(void **state)
{
    struct run r;

    (void)state;
    read_head(&r,
              "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: 1\r\n\r\n");
    assert_null(nk_head_field(nk_parser_head(r.parser), "a", 0));
    assert_int_equal(nk_parser_head(r.parser)->field_count, 2);
    run_fini(&r);
}

static void line_ends_alone_are_no_request(void **state)
{
    struct run r;

    (void)state;
    run_init(&r);
    run_feed(&r, "\r\n\r\n", 4);
    assert_true(nk_parser_is_blank(r.parser));
    run_feed(&r, "G", 1);
    assert_false(nk_parser_is_blank(r.parser));
    run_fini(&r);
}

static void a_token_is_found_in_a_list_in_any_case(void **state)
{
    (void)state;
    assert_true(nk_head_has_token("keep-alive, Upgrade", "upgrade"));
    assert_true(nk_head_has_token("upgrade", "upgrade"));
    assert_true(nk_head_has_token(" ,upgrade ,", "upgrade"));
    assert_false(nk_head_has_token("upgraded", "upgrade"));
    assert_false(nk_head_has_token("up grade", "upgrade"));
    assert_false(nk_head_has_token("", "upgrade"));
    assert_false(nk_head_has_token(NULL, "upgrade"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_verdict_does_not_depend_on_how_the_bytes_were_cut),
        cmocka_unit_test(a_head_is_taken_apart),
        cmocka_unit_test(an_absolute_target_names_the_host),
        cmocka_unit_test(it_stops_behind_the_last_byte_of_the_request),
        cmocka_unit_test(fields_of_a_trailer_are_no_headers),
        cmocka_unit_test(line_ends_alone_are_no_request),
        cmocka_unit_test(a_token_is_found_in_a_list_in_any_case),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
