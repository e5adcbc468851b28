#include "toy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define HOST " HTTP/1.1\r\nHost: x\r\n"
#define GET(path) "GET " path HOST "\r\n"

/* Says it on a fresh connection, and looks for the answer. */
static void ask(struct toy *t, const char *text, const char *want)
{
    toy_forget(t);
    toy_drop(t);
    toy_connect(t);
    toy_say(t, text);
    toy_expect(t, want);
}

static void a_json_body_is_parsed_before_the_handler(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    ask(&t, "POST /echo" HOST "Content-Length: 14\r\n\r\n{\"text\":\"abc\"}", "\r\n\r\nabc");
    ask(&t,
        "POST /echo" HOST "Content-Type: application/json; charset=\"UTF-8\"\r\n"
        "Content-Length: 14\r\n\r\n{\"text\":\"abc\"}",
        "\r\n\r\nabc");
    ask(&t,
        "POST /echo" HOST "Transfer-Encoding: chunked\r\n\r\n"
        "7\r\n{\"text\"\r\n7;a\r\n:\"abc\"}\r\n0\r\n\r\n",
        "\r\n\r\nabc");
    assert_int_equal(t.handled, 3);
    toy_stop(&t);
}

static void a_body_that_is_no_object_never_meets_the_handler(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    ask(&t, "POST /echo" HOST "Content-Length: 2\r\n\r\n[]", "HTTP/1.1 400");
    ask(&t, "POST /echo" HOST "Content-Length: 4\r\n\r\n{} }", "HTTP/1.1 400");
    ask(&t, "POST /echo" HOST "Content-Length: 1\r\n\r\n{", "HTTP/1.1 400");
    ask(&t, "POST /echo" HOST "\r\n", "HTTP/1.1 400");
    assert_int_equal(t.handled, 0);
    toy_stop(&t);
}

static void an_empty_body_is_enough_where_all_fields_are_optional(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    ask(&t, "POST /opt" HOST "\r\n", "\r\n\r\nhello");
    ask(&t, "POST /opt" HOST "Content-Length: 0\r\n\r\n", "\r\n\r\nhello");
    ask(&t, "POST /opt" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "\r\n\r\nhello");
    ask(&t, "POST /opt" HOST "Content-Length: 2\r\n\r\n{}", "\r\n\r\nhello");
    assert_int_equal(t.handled, 4);
    toy_stop(&t);
}

static void another_type_is_refused_with_a_hint(void **state)
{
    static const char *const types[] = {"application/x-www-form-urlencoded", "text/json",
                                        "application/jsonp", "application/json; charset=latin1",
                                        ""};
    struct toy t;

    (void)state;
    toy_start(&t);
    for (size_t i = 0; i < NK_COUNT(types); i++) {
        char text[256];

        snprintf(text, sizeof text,
                 "POST /echo" HOST "Content-Type: %s\r\nContent-Length: 14\r\n\r\n"
                 "{\"text\":\"abc\"}",
                 types[i]);
        ask(&t, text, "curl --json");
        assert_non_null(toy_find(&t, "HTTP/1.1 415"));
    }
    assert_int_equal(t.handled, 0);
    toy_stop(&t);
}

static void a_body_too_large_is_refused_before_it_comes(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    ask(&t, "POST /echo" HOST "Content-Length: 4097\r\n\r\n", "HTTP/1.1 413");
    ask(&t, "PUT /upload" HOST "Content-Length: 1048577\r\nExpect: 100-continue\r\n\r\n",
        "HTTP/1.1 413");
    assert_null(toy_find(&t, "100 Continue"));
    assert_int_equal(t.handled, 0);
    toy_stop(&t);
}

static void a_chunked_body_is_refused_when_it_grows_too_large(void **state)
{
    struct toy t;
    char text[8192];
    int n;

    (void)state;
    toy_start(&t);
    n = snprintf(text, sizeof text, "POST /echo" HOST "Transfer-Encoding: chunked\r\n\r\n1001\r\n");
    memset(text + n, ' ', 4097);
    toy_send(&t, text, (size_t)n + 4097);
    toy_expect_end(&t);
    assert_non_null(toy_find(&t, "HTTP/1.1 413"));
    assert_int_equal(t.handled, 0);
    toy_stop(&t);
}

static void leave_to_send_comes_after_the_gate(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, "POST /echo" HOST "Expect: 100-Continue\r\nContent-Length: 14\r\n\r\n");
    toy_expect(&t, "HTTP/1.1 100 Continue\r\n\r\n");
    toy_say(&t, "{\"text\":\"abc\"}");
    toy_expect(&t, "\r\n\r\nabc");
    ask(&t, "POST /echo" HOST "X-Stranger: 1\r\nExpect: 100-continue\r\nContent-Length: 14\r\n\r\n",
        "HTTP/1.1 401");
    assert_null(toy_find(&t, "100 Continue"));
    toy_expect_end(&t);
    ask(&t, "POST /echo" HOST "Expect: tea\r\nContent-Length: 14\r\n\r\n", "HTTP/1.1 417");
    toy_stop(&t);
}

static void nobody_waits_for_leave_who_has_sent_already(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, "POST /echo" HOST "Expect: 100-continue\r\nContent-Length: 14\r\n\r\n"
                "{\"text\":\"abc\"}");
    toy_expect(&t, "\r\n\r\nabc");
    assert_null(toy_find(&t, "100 Continue"));
    toy_stop(&t);
}

static void a_streamed_body_comes_piece_by_piece(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, "PUT /upload" HOST "Content-Length: 6\r\n\r\nabc");
    toy_wait(&t, &t.handled, 1);
    assert_int_equal(t.uploaded, 3);
    assert_int_equal(t.ended, 0);
    toy_say(&t, "def");
    toy_expect(&t, "\r\n\r\n6");
    assert_int_equal(t.ended, 1);
    toy_forget(&t);
    toy_say(&t, "PUT /upload" HOST "\r\n");
    toy_expect(&t, "\r\n\r\n6");
    assert_int_equal(t.ended, 2);
    toy_stop(&t);
}

static void multipart_is_streamed_where_the_row_allows_it(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    ask(&t,
        "POST /exec" HOST "Content-Type: multipart/form-data; boundary=x\r\n"
        "Content-Length: 5\r\n\r\nabcde",
        "\r\n\r\n5");
    ask(&t,
        "POST /echo" HOST "Content-Type: multipart/form-data; boundary=x\r\n"
        "Content-Length: 5\r\n\r\nabcde",
        "HTTP/1.1 415");
    toy_stop(&t);
}

static void a_paused_body_is_not_read(void **state)
{
    static char block[65536];
    struct toy t;
    size_t sent = 0;
    ssize_t n = 0;

    (void)state;
    toy_start(&t);
    t.pause_upload = true;
    memset(block, 'a', sizeof block);
    toy_say(&t, "PUT /upload" HOST "Content-Length: 1048576\r\n\r\n");
    while (n >= 0 && sent < 1048576) {
        n = send(t.fd, block, sizeof block, MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        toy_turn(&t);
    }
    assert_true(sent < 1048576);
    assert_true(t.uploaded <= NK_INPUT_SIZE);
    assert_int_equal(uv_backend_timeout(&t.loop), -1);
    t.pause_upload = false;
    nk_req_pause_body(t.held, false);
    while (sent < 1048576) {
        size_t want = 1048576 - sent < sizeof block ? 1048576 - sent : sizeof block;

        toy_send(&t, block, want);
        sent += want;
    }
    toy_expect(&t, "\r\n\r\n1048576");
    toy_stop(&t);
}

static void an_answer_before_the_end_of_a_paused_body_frees_the_connection(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    t.pause_upload = true;
    toy_say(&t, "PUT /upload" HOST "Content-Length: 10\r\n\r\nabc");
    toy_wait(&t, &t.handled, 1);
    nk_reply_bytes(t.held, 200, NULL, "early", 5);
    toy_expect(&t, "\r\n\r\nearly");
    toy_say(&t, "defghij" GET("/names/after"));
    toy_expect(&t, "\r\n\r\nafter");
    assert_int_equal(t.ended, 0);
    toy_stop(&t);
}

static void a_sink_may_refuse_what_it_reads(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, "PUT /upload" HOST "Content-Length: 10\r\n\r\nabc!");
    toy_expect(&t, "HTTP/1.1 409");
    assert_int_equal(t.ended, 0);
    toy_forget(&t);
    toy_say(&t, "defghi" GET("/names/after"));
    toy_expect(&t, "\r\n\r\nafter");
    assert_int_equal(t.closed, 1);
    toy_stop(&t);
}

static void a_large_unwanted_body_costs_the_connection_but_not_the_answer(void **state)
{
    static char block[65536];
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, "PUT /hello" HOST "Content-Length: 1000000\r\n\r\n");
    toy_send(&t, block, sizeof block);
    toy_send(&t, block, sizeof block);
    toy_expect_end(&t);
    assert_non_null(toy_find(&t, "HTTP/1.1 405"));
    assert_non_null(toy_find(&t, "Connection: close\r\n"));
    toy_stop(&t);
}

static void a_body_that_ends_early_is_a_bad_request(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, "POST /echo" HOST "Content-Length: 14\r\n\r\n{\"text\"");
    assert_int_equal(shutdown(t.fd, SHUT_WR), 0);
    toy_expect_end(&t);
    assert_non_null(toy_find(&t, "HTTP/1.1 400"));
    assert_int_equal(t.handled, 0);
    toy_forget(&t);
    toy_drop(&t);
    toy_connect(&t);
    toy_say(&t, "PUT /upload" HOST "Content-Length: 14\r\n\r\nabc");
    assert_int_equal(shutdown(t.fd, SHUT_WR), 0);
    toy_expect_end(&t);
    assert_non_null(toy_find(&t, "HTTP/1.1 400"));
    assert_int_equal(t.ended, 0);
    assert_int_equal(t.closed, 1);
    toy_stop(&t);
}

static void an_upload_whose_client_leaves_is_told(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, "PUT /upload" HOST "Content-Length: 14\r\n\r\nabc");
    toy_wait(&t, &t.handled, 1);
    toy_drop(&t);
    toy_wait(&t, &t.closed, 1);
    assert_int_equal(t.ended, 0);
    assert_int_equal(t.gone, 1);
    toy_stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_json_body_is_parsed_before_the_handler),
        cmocka_unit_test(a_body_that_is_no_object_never_meets_the_handler),
        cmocka_unit_test(an_empty_body_is_enough_where_all_fields_are_optional),
        cmocka_unit_test(another_type_is_refused_with_a_hint),
        cmocka_unit_test(a_body_too_large_is_refused_before_it_comes),
        cmocka_unit_test(a_chunked_body_is_refused_when_it_grows_too_large),
        cmocka_unit_test(leave_to_send_comes_after_the_gate),
        cmocka_unit_test(nobody_waits_for_leave_who_has_sent_already),
        cmocka_unit_test(a_streamed_body_comes_piece_by_piece),
        cmocka_unit_test(multipart_is_streamed_where_the_row_allows_it),
        cmocka_unit_test(a_paused_body_is_not_read),
        cmocka_unit_test(an_answer_before_the_end_of_a_paused_body_frees_the_connection),
        cmocka_unit_test(a_sink_may_refuse_what_it_reads),
        cmocka_unit_test(a_large_unwanted_body_costs_the_connection_but_not_the_answer),
        cmocka_unit_test(a_body_that_ends_early_is_a_bad_request),
        cmocka_unit_test(an_upload_whose_client_leaves_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
