#include "toy.h"

#include <string.h>

#define HOST " HTTP/1.1\r\nHost: x\r\n"
#define GET(path) "GET " path HOST "\r\n"
#define SOON_MS 20

static void start(struct toy *t, const struct nk_http_limits *limits)
{
    toy_init(t);
    t->cfg.limits.header_ms = limits->header_ms;
    t->cfg.limits.idle_ms = limits->idle_ms;
    t->cfg.limits.body_grace_ms = limits->body_grace_ms;
    t->cfg.limits.body_min_rate = limits->body_min_rate;
    t->cfg.limits.write_stall_ms = limits->write_stall_ms;
    t->cfg.limits.local_stall_ms = limits->local_stall_ms;
    toy_open(t);
    toy_connect(t);
}

static void an_idle_connection_is_closed_without_a_word(void **state)
{
    struct toy t;

    (void)state;
    start(&t, &(struct nk_http_limits){.idle_ms = SOON_MS});
    toy_expect_end(&t);
    assert_int_equal(t.reply_len, 0);
    toy_drop(&t);
    toy_forget(&t);
    toy_connect(&t);
    toy_say(&t, GET("/hello"));
    toy_expect(&t, "hello");
    toy_forget(&t);
    toy_expect_end(&t);
    assert_int_equal(t.reply_len, 0);
    assert_int_equal(t.finished, 1);
    toy_stop(&t);
}

static void headers_that_come_too_slowly_are_a_timeout(void **state)
{
    struct toy t;

    (void)state;
    start(&t, &(struct nk_http_limits){.header_ms = SOON_MS});
    toy_say(&t, "GET /hello" HOST);
    toy_expect_end(&t);
    assert_non_null(toy_find(&t, "HTTP/1.1 408 Request Timeout\r\n"));
    assert_non_null(toy_find(&t, "Connection: close\r\n"));
    assert_int_equal(t.handled, 0);
    assert_int_equal(t.last_status, 408);
    toy_stop(&t);
}

/* Nothing but line ends has come: there is no request to be answered. */
static void line_ends_alone_are_closed_without_a_word(void **state)
{
    struct toy t;

    (void)state;
    start(&t, &(struct nk_http_limits){.header_ms = SOON_MS});
    toy_say(&t, "\r\n");
    toy_expect_end(&t);
    assert_int_equal(t.reply_len, 0);
    toy_stop(&t);
}

static void a_body_that_comes_too_slowly_is_a_timeout(void **state)
{
    const struct nk_http_limits limits = {.body_grace_ms = SOON_MS, .body_min_rate = 1000000};
    struct toy t;

    (void)state;
    start(&t, &limits);
    toy_say(&t, "POST /echo" HOST "Content-Length: 14\r\n\r\n{\"text\"");
    toy_expect_end(&t);
    assert_non_null(toy_find(&t, "HTTP/1.1 408"));
    toy_drop(&t);
    toy_forget(&t);
    toy_connect(&t);
    toy_say(&t, "PUT /upload" HOST "Content-Length: 14\r\n\r\nabc");
    toy_expect_end(&t);
    assert_non_null(toy_find(&t, "HTTP/1.1 408"));
    assert_int_equal(t.ended, 0);
    assert_int_equal(t.closed, 1);
    toy_stop(&t);
}

static void bytes_buy_time_for_the_rest_of_a_body(void **state)
{
    /* A byte buys a second: thirty are enough for the whole test. */
    const struct nk_http_limits limits = {.body_grace_ms = 1, .body_min_rate = 1};
    struct toy t;

    (void)state;
    start(&t, &limits);
    toy_say(&t, "PUT /upload" HOST "Content-Length: 60\r\n\r\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    toy_wait(&t, &t.handled, 1);
    toy_pass(&t, 2 * SOON_MS);
    toy_say(&t, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    toy_expect(&t, "\r\n\r\n60");
    toy_stop(&t);
}

static void a_body_that_nobody_reads_is_not_late(void **state)
{
    const struct nk_http_limits limits = {.body_grace_ms = SOON_MS, .body_min_rate = 1};
    struct toy t;

    (void)state;
    start(&t, &limits);
    t.pause_upload = true;
    toy_say(&t, "PUT /upload" HOST "Content-Length: 6\r\n\r\nabc");
    toy_wait(&t, &t.handled, 1);
    toy_pass(&t, 3 * SOON_MS);
    assert_int_equal(t.closed, 0);
    nk_req_pause_body(t.held, false);
    toy_say(&t, "def");
    toy_turn(&t);
    if (t.held)
        nk_req_pause_body(t.held, false);
    toy_expect(&t, "\r\n\r\n6");
    toy_stop(&t);
}

static void a_handler_may_take_its_time(void **state)
{
    const struct nk_http_limits limits = {.header_ms = SOON_MS,
                                          .idle_ms = SOON_MS,
                                          .body_grace_ms = SOON_MS,
                                          .body_min_rate = 1000000,
                                          .write_stall_ms = SOON_MS,
                                          .local_stall_ms = SOON_MS};
    struct toy t;

    (void)state;
    start(&t, &limits);
    toy_say(&t, GET("/later"));
    toy_wait(&t, &t.handled, 1);
    toy_pass(&t, 3 * SOON_MS);
    nk_reply_bytes(t.held, 200, NULL, "late", 4);
    toy_expect(&t, "late");
    toy_stop(&t);
}

static void a_reader_that_stalls_is_cut(void **state)
{
    struct toy t;

    (void)state;
    start(&t, &(struct nk_http_limits){.local_stall_ms = SOON_MS});
    toy_say(&t, GET("/stream?size=100000000"));
    toy_wait(&t, &t.closed, 1);
    assert_int_equal(t.gone, 1);
    assert_int_equal(nk_server_stats(t.server)->open, 0);
    toy_stop(&t);
}

static void a_reader_on_the_unix_socket_has_a_limit_of_its_own(void **state)
{
    struct toy t;

    (void)state;
    start(&t, &(struct nk_http_limits){.write_stall_ms = SOON_MS});
    toy_say(&t, GET("/stream?size=100000000"));
    toy_pass(&t, 3 * SOON_MS);
    assert_true(t.source.pulled > 0);
    assert_int_equal(t.closed, 0);
    toy_stop(&t);
}

static void a_reader_from_afar_that_stalls_is_cut(void **state)
{
    struct toy t;

    (void)state;
    start(&t, &(struct nk_http_limits){.write_stall_ms = SOON_MS});
    toy_say(&t, GET("/later"));
    toy_wait(&t, &t.handled, 1);
    t.held->conn->local = false;
    nk_reply_bytes(t.held, 200, NULL, "late", 4);
    toy_expect(&t, "late");
    toy_say(&t, GET("/stream?size=100000000"));
    toy_wait(&t, &t.closed, 2);
    assert_int_equal(t.gone, 1);
    toy_stop(&t);
}

static void a_source_that_has_nothing_is_no_stall(void **state)
{
    struct toy t;

    (void)state;
    start(&t, &(struct nk_http_limits){.local_stall_ms = SOON_MS});
    t.source.dry = true;
    toy_say(&t, GET("/stream?size=4"));
    toy_pass(&t, 3 * SOON_MS);
    t.source.dry = false;
    nk_reply_wake(t.held);
    toy_expect(&t, "xxxx\r\n0\r\n\r\n");
    toy_stop(&t);
}

static void a_client_that_ignores_the_end_is_left_after_a_while(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, "nonsense\r\n\r\n");
    toy_expect_end(&t);
    toy_begin_wait(&t);
    while (nk_server_stats(t.server)->open > 0 && !t.late)
        uv_run(&t.loop, UV_RUN_ONCE);
    toy_end_wait(&t);
    assert_int_equal(nk_server_stats(t.server)->open, 0);
    toy_stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_connection_is_closed_without_a_word),
        cmocka_unit_test(headers_that_come_too_slowly_are_a_timeout),
        cmocka_unit_test(line_ends_alone_are_closed_without_a_word),
        cmocka_unit_test(a_body_that_comes_too_slowly_is_a_timeout),
        cmocka_unit_test(bytes_buy_time_for_the_rest_of_a_body),
        cmocka_unit_test(a_body_that_nobody_reads_is_not_late),
        cmocka_unit_test(a_handler_may_take_its_time),
        cmocka_unit_test(a_reader_that_stalls_is_cut),
        cmocka_unit_test(a_reader_on_the_unix_socket_has_a_limit_of_its_own),
        cmocka_unit_test(a_reader_from_afar_that_stalls_is_cut),
        cmocka_unit_test(a_source_that_has_nothing_is_no_stall),
        cmocka_unit_test(a_client_that_ignores_the_end_is_left_after_a_while),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
