#include "toy.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"

#define HOST " HTTP/1.1\r\nHost: x\r\n"
#define GET(path) "GET " path HOST "\r\n"

/* A request that is being worked on. */
static struct nk_req *hold(struct toy *t, const char *text)
{
    toy_start(t);
    toy_say(t, text);
    toy_wait(t, &t->handled, 1);
    assert_non_null(t->held);
    return t->held;
}

static void let_go(struct toy *t)
{
    nk_reply_empty(t->held, 204);
    toy_expect(t, "\r\n\r\n");
    assert_non_null(toy_find(t, "HTTP/1.1 204 No Content\r\n"));
    assert_null(toy_find(t, "Content-Length"));
    toy_stop(t);
}

static void a_handler_sees_the_request(void **state)
{
    struct toy t;
    struct nk_req *req = hold(&t, "GET /later?n=1" HOST "A: 1\r\na: 2\r\nX-Request-Id: me\r\n\r\n");

    (void)state;
    assert_int_equal(nk_req_method(req), NK_GET);
    assert_string_equal(nk_req_path(req), "/later");
    assert_string_equal(nk_req_route(req)->operation, "later");
    assert_string_equal(nk_req_id(req), "me");
    assert_string_equal(nk_req_header(req, "A"), "1");
    assert_int_equal(nk_req_header_count(req, "a"), 2);
    assert_int_equal(nk_req_header_count(req, "b"), 0);
    assert_null(nk_req_header(req, "b"));
    assert_string_equal(nk_req_query(req, "n"), "1");
    assert_int_equal(nk_req_query_len(req, "n"), 1);
    assert_null(nk_req_query(req, "flag"));
    assert_int_equal(nk_req_query_len(req, "flag"), 0);
    assert_null(nk_req_param(req, "name"));
    assert_true(nk_req_is_local(req));
    assert_int_equal(nk_req_content_length(req), -1);
    assert_null(nk_req_json(req));
    assert_true(nk_req_started_ms(req) > 0);
    assert_non_null(nk_arena_alloc(nk_req_arena(req), 10));
    let_go(&t);
}

static void the_host_of_an_absolute_target_replaces_the_header(void **state)
{
    struct toy t;
    struct nk_req *req = hold(&t, GET("http://other/later"));

    (void)state;
    assert_string_equal(nk_req_header(req, "host"), "other");
    let_go(&t);
}

static void check_number(const char *query, uint64_t max, int result, uint64_t value)
{
    struct toy t;
    struct nk_req *req;
    struct nk_err err = {0};
    char text[128];
    uint64_t out = 7;

    snprintf(text, sizeof text, GET("/later?n=%s"), query);
    req = hold(&t, text);
    assert_int_equal(nk_req_query_u64(req, "n", max, &out, &err), result);
    assert_int_equal(out, value);
    if (result < 0)
        assert_int_equal(err.code, NK_BAD_REQUEST);
    let_go(&t);
}

static void numbers_of_a_query_are_whole_and_bounded(void **state)
{
    (void)state;
    check_number("0", 10, 0, 0);
    check_number("10", 10, 0, 10);
    check_number("010", 10, 0, 10);
    check_number("11", 10, -1, 7);
    check_number("5", 3, -1, 7);
    check_number("18446744073709551615", UINT64_MAX, 0, UINT64_MAX);
    check_number("18446744073709551616", UINT64_MAX, -1, 7);
    check_number("99999999999999999999999", UINT64_MAX, -1, 7);
    check_number("", 10, -1, 7);
    check_number("-1", 10, -1, 7);
    check_number("+1", 10, -1, 7);
    check_number("1.5", 10, -1, 7);
    check_number("0x1", 10, -1, 7);
}

static void check_flag(const char *text, int result, bool value)
{
    struct toy t;
    struct nk_req *req = hold(&t, text);
    bool out = value;

    assert_int_equal(nk_req_query_bool(req, "flag", &out, NULL), result);
    assert_int_equal(out, value);
    out = !value;
    (void)nk_req_query_bool(req, "flag", &out, NULL);
    assert_int_equal(out, result == 0 && strstr(text, "flag") ? value : !value);
    let_go(&t);
}

static void booleans_of_a_query_are_true_false_1_and_0(void **state)
{
    (void)state;
    check_flag(GET("/later?flag=true"), 0, true);
    check_flag(GET("/later?flag=1"), 0, true);
    check_flag(GET("/later?flag=false"), 0, false);
    check_flag(GET("/later?flag=0"), 0, false);
    check_flag(GET("/later?flag=yes"), -1, true);
    check_flag(GET("/later?flag=TRUE"), -1, true);
    check_flag(GET("/later?flag="), -1, true);
    check_flag(GET("/later"), 0, true);
}

static void a_request_is_failed_later(void **state)
{
    struct toy t;
    struct nk_req *req = hold(&t, GET("/later"));
    struct nk_err err;

    (void)state;
    nk_fail(&err, NK_CONFLICT, "changed its mind");
    nk_req_fail(req, &err);
    nk_req_fail(req, &err);
    toy_expect(&t, "changed its mind");
    assert_non_null(toy_find(&t, "HTTP/1.1 409"));
    assert_int_equal(toy_count(&t, "X-Request-Id"), 1);
    assert_int_equal(t.closed, 1);
    toy_stop(&t);
}

static void only_the_first_answer_counts(void **state)
{
    struct toy t;
    struct nk_req *req = hold(&t, GET("/later"));
    struct nk_buf second = {0};

    (void)state;
    nk_buf_add_str(&second, "second");
    nk_reply_bytes(req, 200, NULL, "first", 5);
    nk_reply_take(req, 200, NULL, &second);
    nk_reply_file(req, 200, NULL, dup(0), 0, 1);
    toy_expect(&t, "\r\n\r\nfirst");
    toy_turn(&t);
    toy_read(&t);
    assert_null(toy_find(&t, "second"));
    assert_int_equal(nk_buf_left(&second), 0);
    assert_int_equal(t.closed, 1);
    toy_stop(&t);
}

static void a_body_that_failed_becomes_a_problem(void **state)
{
    struct toy t;
    struct nk_req *req = hold(&t, GET("/later"));
    struct nk_buf body = {.failed = true};

    (void)state;
    nk_reply_take(req, 200, NULL, &body);
    toy_expect(&t, "HTTP/1.1 503");
    toy_stop(&t);
}

static void nothing_is_called_before_the_answerer_has_returned(void **state)
{
    struct toy t;
    struct nk_req *req = hold(&t, GET("/later"));

    (void)state;
    nk_reply_bytes(req, 200, NULL, "a", 1);
    assert_int_equal(t.closed, 0);
    toy_expect(&t, "\r\n\r\na");
    assert_int_equal(t.closed, 1);
    toy_stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_sees_the_request),
        cmocka_unit_test(the_host_of_an_absolute_target_replaces_the_header),
        cmocka_unit_test(numbers_of_a_query_are_whole_and_bounded),
        cmocka_unit_test(booleans_of_a_query_are_true_false_1_and_0),
        cmocka_unit_test(a_request_is_failed_later),
        cmocka_unit_test(only_the_first_answer_counts),
        cmocka_unit_test(a_body_that_failed_becomes_a_problem),
        cmocka_unit_test(nothing_is_called_before_the_answerer_has_returned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
