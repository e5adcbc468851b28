#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "http/parser.h"
#include "http/proxy_head.h"
#include "http/response.h"

static const struct nk_parser_limits limits = {
    .header_max = 16384, .header_lines_max = 100, .url_max = 8192, .chunk_line_max = 256};

/* What a server gets of the request `text`, whose own path begins behind `prefix` bytes. */
static char *passed_on(const char *text, size_t prefix, struct nk_proxy_head more)
{
    struct nk_parser_input in = {.data = (const uint8_t *)text, .len = strlen(text)};
    struct nk_arena arena = {0};
    struct nk_parser *parser = nk_parser_new(&arena, &limits);
    struct nk_buf out = {0};
    struct nk_err err;
    char *copy;

    assert_int_equal(nk_parser_step(parser, &in, &err), NK_PARSE_HEAD);
    more.head = nk_parser_head(parser);
    more.method = nk_router_method_name(more.head->method);
    more.target = more.head->path + prefix;
    more.host = nk_head_field(more.head, "host", 0);
    more.peer = more.peer ? more.peer : "";
    more.port = 8080;
    nk_proxy_head_request(&out, &more);
    assert_false(out.failed);
    copy = strndup((const char *)nk_buf_front(&out), nk_buf_left(&out));
    nk_buf_fini(&out);
    nk_parser_free(parser);
    nk_arena_fini(&arena);
    return copy;
}

static void expect(const char *text, size_t prefix, struct nk_proxy_head more, const char *want)
{
    char *got = passed_on(text, prefix, more);

    assert_string_equal(got, want);
    free(got);
}

static void a_request_is_written_anew(void **state)
{
    (void)state;
    expect("GET /p/8080/a%20b?c=d&e HTTP/1.1\r\nHost: box:1\r\nAccept: x\r\n\r\n", 7,
           (struct nk_proxy_head){.peer = "10.0.0.1"},
           "GET /a%20b?c=d&e HTTP/1.1\r\nHost: localhost:8080\r\nAccept: x\r\n"
           "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Host: box:1\r\nX-Forwarded-Proto: http\r\n"
           "X-Forwarded-Prefix: /p/8080\r\nConnection: close\r\n\r\n");
}

static void an_empty_query_is_a_query(void **state)
{
    char *with = passed_on("GET /p/? HTTP/1.1\r\nHost: x\r\n\r\n", 2, (struct nk_proxy_head){0});
    char *without = passed_on("GET /p/ HTTP/1.1\r\nHost: x\r\n\r\n", 2, (struct nk_proxy_head){0});

    (void)state;
    assert_memory_equal(with, "GET /? HTTP/1.1\r\n", 17);
    assert_memory_equal(without, "GET / HTTP/1.1\r\n", 16);
    free(with);
    free(without);
}

static void a_body_has_one_framing(void **state)
{
    (void)state;
    expect("PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 0005\r\nExpect: 100-continue\r\n\r\n", 0,
           (struct nk_proxy_head){0},
           "PUT /x HTTP/1.1\r\nHost: localhost:8080\r\nX-Forwarded-Host: x\r\n"
           "X-Forwarded-Proto: http\r\nX-Forwarded-Prefix: \r\nConnection: close\r\n"
           "Content-Length: 5\r\n\r\n");
    expect("PUT /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n", 0,
           (struct nk_proxy_head){0},
           "PUT /x HTTP/1.1\r\nHost: localhost:8080\r\nX-Forwarded-Host: x\r\n"
           "X-Forwarded-Proto: http\r\nX-Forwarded-Prefix: \r\nConnection: close\r\n"
           "Transfer-Encoding: chunked\r\n\r\n");
}

static void what_is_ours_or_a_neighbours_stays_out(void **state)
{
    static const char text[] = "GET /x HTTP/1.1\r\nHost: x\r\nAUTHORIZATION: Bearer t\r\n"
                               "X-RunBox-Identity: a\r\nx-runbox-: b\r\nTE: trailers\r\n"
                               "Connection: keep-alive, a\r\nConnection: B ,c\r\nA: 1\r\nb: 2\r\n"
                               "C: 3\r\nD: 4\r\nUpgrade: h2c\r\nTrailer: x\r\n\r\n";
    char *got = passed_on(text, 0, (struct nk_proxy_head){0});

    (void)state;
    assert_non_null(strstr(got, "\r\nD: 4\r\n"));
    assert_null(strstr(got, "earer"));
    assert_null(strcasestr(got, "runbox"));
    assert_null(strstr(got, "A: 1"));
    assert_null(strstr(got, "b: 2"));
    assert_null(strstr(got, "C: 3"));
    assert_null(strcasestr(got, "trailer"));
    assert_null(strstr(got, "h2c"));
    free(got);
    got = passed_on(text, 0, (struct nk_proxy_head){.keeps_auth = true});
    assert_non_null(strstr(got, "Bearer t"));
    free(got);
}

static void an_upgrade_asks_for_a_websocket(void **state)
{
    char *got = passed_on("GET /x HTTP/1.1\r\nHost: x\r\nConnection: upgrade, Sec-X\r\nSec-X: 1\r\n"
                          "Upgrade: websocket, h2c\r\nSec-WebSocket-Key: k\r\n\r\n",
                          0, (struct nk_proxy_head){.upgrade = true});

    (void)state;
    assert_non_null(strstr(got, "Sec-WebSocket-Key: k\r\n"));
    assert_non_null(strstr(got, "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
    assert_null(strstr(got, "close"));
    assert_null(strstr(got, "Sec-X"));
    free(got);
}

static void an_answers_lines_come_back_but_for_ours_and_neighbours(void **state)
{
    static const char text[] =
        "HTTP/1.1 200 OK\r\nA: 1\r\nSet-Cookie: x\r\nset-cookie: y\r\nConnection: B\r\nB: 2\r\n"
        "Transfer-Encoding: chunked\r\nX-Request-Id: 3\r\nX-NOOK-instance: 4\r\n"
        "Access-Control-Allow-Origin: *\r\nKeep-Alive: 5\r\n\r\n";
    struct nk_response r = {0};
    struct nk_buf in = {0}, out = {0};
    bool done = false;

    (void)state;
    nk_buf_add_str(&in, text);
    assert_int_equal(nk_response_read_head(&r, &in, &done, NULL), 0);
    nk_proxy_head_answer(&out, &r, true);
    nk_buf_add_char(&out, '\0');
    assert_string_equal(nk_buf_front(&out), "A: 1\r\nSet-Cookie: x\r\nset-cookie: y\r\n");
    nk_buf_fini(&out);
    nk_proxy_head_answer(&out, &r, false);
    nk_buf_add_char(&out, '\0');
    assert_non_null(strstr((const char *)nk_buf_front(&out), "Allow-Origin: *\r\n"));
    nk_buf_fini(&out);
    nk_buf_fini(&in);
    nk_response_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_written_anew),
        cmocka_unit_test(an_empty_query_is_a_query),
        cmocka_unit_test(a_body_has_one_framing),
        cmocka_unit_test(what_is_ours_or_a_neighbours_stays_out),
        cmocka_unit_test(an_upgrade_asks_for_a_websocket),
        cmocka_unit_test(an_answers_lines_come_back_but_for_ours_and_neighbours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
