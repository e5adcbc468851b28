#include "toy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOST " HTTP/1.1\r\nHost: x\r\n"
#define GET(path) "GET " path HOST "\r\n"

static void a_request_gets_its_answer(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/hello"));
    toy_expect(&t, "\r\n\r\nhello");
    assert_non_null(toy_find(&t, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(toy_find(&t, "Content-Length: 5\r\n"));
    assert_non_null(toy_find(&t, "X-Nook-Instance: toy\r\n"));
    assert_non_null(toy_find(&t, "X-Request-Id: "));
    assert_null(toy_find(&t, "Connection:"));
    assert_int_equal(t.closed, 1);
    assert_int_equal(t.gone, 0);
    assert_int_equal(t.finished, 1);
    assert_int_equal(t.last_status, 200);
    toy_stop(&t);
}

static void a_connection_serves_one_request_after_another(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    for (unsigned i = 1; i <= 3; i++) {
        toy_forget(&t);
        toy_say(&t, GET("/hello"));
        toy_expect(&t, "\r\n\r\nhello");
        assert_int_equal(t.closed, i);
    }
    assert_int_equal(nk_server_stats(t.server)->open, 1);
    assert_int_equal(nk_server_stats(t.server)->busy, 0);
    assert_int_equal(nk_server_stats(t.server)->requests, 3);
    toy_stop(&t);
}

static void pipelined_requests_are_answered_in_order_one_at_a_time(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/names/a") GET("/later") GET("/names/b") GET("/names/c"));
    toy_expect(&t, "\r\n\r\na");
    toy_turn(&t);
    toy_read(&t);
    assert_non_null(t.held);
    assert_int_equal(toy_count(&t, "HTTP/1.1 200"), 1);
    nk_reply_bytes(t.held, 200, NULL, "L", 1);
    toy_expect(&t, "\r\n\r\nc");
    assert_true(toy_find(&t, "\r\n\r\nL") < toy_find(&t, "\r\n\r\nb"));
    assert_true(toy_find(&t, "\r\n\r\nb") < toy_find(&t, "\r\n\r\nc"));
    toy_stop(&t);
}

static void input_that_waits_is_bounded(void **state)
{
    static const char request[] = GET("/hello");
    struct toy t;
    size_t sent = 0;
    ssize_t n = 0;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/later"));
    toy_wait(&t, &t.handled, 1);
    while (n >= 0) {
        n = send(t.fd, request, sizeof request - 1, MSG_NOSIGNAL);
        sent += n > 0;
        toy_turn(&t);
    }
    assert_true(nk_server_stats(t.server)->bytes_in <= 2 * NK_INPUT_SIZE);
    nk_reply_bytes(t.held, 200, NULL, "L", 1);
    while (t.handled < sent + 1 && !t.reply_over) {
        toy_turn(&t);
        toy_read(&t);
    }
    assert_int_equal(t.handled, sent + 1);
    toy_stop(&t);
}

static void head_gets_the_headers_alone(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, "HEAD /hello" HOST "\r\n");
    toy_expect(&t, "Content-Length: 5\r\n");
    assert_null(toy_find(&t, "\r\n\r\nhello"));
    toy_say(&t, "HEAD /stream?size=5" HOST "\r\n" GET("/names/after"));
    toy_expect(&t, "\r\n\r\nafter");
    assert_int_equal(t.source.pulled, 0);
    assert_null(toy_find(&t, "xxxxx"));
    toy_stop(&t);
}

static void the_id_of_a_request_is_its_own_where_it_is_fit(void **state)
{
    static const char *const unfit[] = {"", "a b", "\xe4"};
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, "GET /hello" HOST "X-Request-Id: my-Own_1\r\n\r\n");
    toy_expect(&t, "X-Request-Id: my-Own_1\r\n");
    toy_expect(&t, "hello");
    for (size_t i = 0; i < NK_COUNT(unfit); i++) {
        char text[256];

        toy_forget(&t);
        snprintf(text, sizeof text, "GET /hello" HOST "X-Request-Id: %s\r\n\r\n", unfit[i]);
        toy_say(&t, text);
        toy_expect(&t, "hello");
        snprintf(text, sizeof text, "X-Request-Id: %s\r\n", unfit[i]);
        assert_null(toy_find(&t, text));
        assert_non_null(toy_find(&t, "X-Request-Id: "));
    }
    toy_stop(&t);
}

static void an_answer_to_bad_bytes_has_ids_and_ends_the_connection(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, "what is this\r\n\r\n");
    toy_expect_end(&t);
    assert_non_null(toy_find(&t, "HTTP/1.1 400 Bad Request\r\n"));
    assert_non_null(toy_find(&t, "X-Request-Id: "));
    assert_non_null(toy_find(&t, "X-Nook-Instance: toy\r\n"));
    assert_non_null(toy_find(&t, "Connection: close\r\n"));
    assert_int_equal(t.finished, 1);
    toy_stop(&t);
}

static void the_gate_is_asked_before_the_table_tells_anything(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, "GET /nothing" HOST "X-Stranger: 1\r\n\r\n");
    toy_expect(&t, "HTTP/1.1 401");
    toy_forget(&t);
    toy_say(&t, "PUT /hello?a=%2x" HOST "X-Stranger: 1\r\n\r\n");
    toy_expect(&t, "HTTP/1.1 400");
    toy_stop(&t);
}

static void parameters_come_decoded(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/names/a%2Fb+c?tail=d%20e"));
    toy_expect(&t, "\r\n\r\na/b+c");
    assert_non_null(toy_find(&t, "X-Tail: d e\r\n"));
    toy_forget(&t);
    toy_say(&t, GET("/names/a?tale=1"));
    toy_expect(&t, "tale");
    assert_non_null(toy_find(&t, "HTTP/1.1 400"));
    toy_forget(&t);
    toy_say(&t, GET("/names/a?tail=1&tail=2"));
    toy_expect(&t, "tail");
    assert_non_null(toy_find(&t, "HTTP/1.1 400"));
    toy_stop(&t);
}

static void an_old_client_gets_an_answer_that_it_can_read(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, "GET /stream?size=100000 HTTP/1.0\r\n\r\n");
    toy_expect_end(&t);
    assert_null(toy_find(&t, "chunked"));
    assert_non_null(toy_find(&t, "Connection: close\r\n"));
    assert_int_equal(t.reply_len - (size_t)(toy_find(&t, "\r\n\r\n") + 4 - t.reply), 100000);
    toy_stop(&t);
}

static void a_closing_server_cuts_what_runs(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/later"));
    toy_wait(&t, &t.handled, 1);
    nk_server_close(&t.server);
    toy_turn(&t);
    assert_int_equal(t.closed, 1);
    assert_int_equal(t.gone, 1);
    toy_expect_end(&t);
    toy_stop(&t);
}

static void a_server_may_be_closed_by_a_handler(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/end") GET("/hello"));
    toy_turn(&t);
    assert_null(t.server);
    assert_int_equal(t.closed, 1);
    assert_int_equal(t.handled, 1);
    toy_expect_end(&t);
    toy_stop(&t);
}

static void many_requests_in_one_read_are_all_answered(void **state)
{
    static const char request[] = GET("/names/a");
    char text[1000 * (sizeof request - 1)];
    struct toy t;
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = request[i % (sizeof request - 1)];
    toy_start(&t);
    toy_send(&t, text, sizeof text);
    toy_begin_wait(&t);
    while (count < 1000 && !t.late) {
        uv_run(&t.loop, UV_RUN_NOWAIT);
        toy_read(&t);
        count = toy_count(&t, "\r\n\r\na");
    }
    toy_end_wait(&t);
    assert_int_equal(count, 1000);
    toy_stop(&t);
}

static void on_drained(void *ctx)
{
    ((struct toy *)ctx)->drained = true;
}

static void draining_closes_the_idle_and_lets_the_busy_finish(void **state)
{
    struct toy t;
    int idle;
    char byte;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/hello"));
    toy_expect(&t, "hello");
    toy_forget(&t);
    idle = t.fd;
    toy_connect(&t);
    toy_say(&t, GET("/later"));
    toy_wait(&t, &t.handled, 2);
    nk_server_drain(t.server, on_drained, &t);
    toy_turn(&t);
    assert_int_equal(recv(idle, &byte, 1, MSG_DONTWAIT), 0);
    assert_false(t.drained);
    nk_reply_bytes(t.held, 200, NULL, "done", 4);
    toy_expect(&t, "done");
    assert_non_null(toy_find(&t, "Connection: close\r\n"));
    toy_expect_end(&t);
    toy_turn(&t);
    assert_true(t.drained);
    (void)close(idle);
    toy_stop(&t);
}

static void a_server_without_connections_is_drained_at_once(void **state)
{
    struct toy t;

    (void)state;
    toy_init(&t);
    toy_open(&t);
    nk_server_drain(t.server, on_drained, &t);
    assert_false(t.drained);
    toy_turn(&t);
    assert_true(t.drained);
    toy_stop(&t);
}

static void nothing_wakes_an_idle_loop(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/hello"));
    toy_expect(&t, "hello");
    toy_turn(&t);
    /* No deadline is set in the toy, so the loop would wait for ever. */
    assert_int_equal(uv_backend_timeout(&t.loop), -1);
    toy_stop(&t);
}

static void an_idle_connection_is_small(void **state)
{
    (void)state;
    assert_true(sizeof(struct nk_conn) <= 768);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_gets_its_answer),
        cmocka_unit_test(a_connection_serves_one_request_after_another),
        cmocka_unit_test(pipelined_requests_are_answered_in_order_one_at_a_time),
        cmocka_unit_test(input_that_waits_is_bounded),
        cmocka_unit_test(head_gets_the_headers_alone),
        cmocka_unit_test(the_id_of_a_request_is_its_own_where_it_is_fit),
        cmocka_unit_test(an_answer_to_bad_bytes_has_ids_and_ends_the_connection),
        cmocka_unit_test(the_gate_is_asked_before_the_table_tells_anything),
        cmocka_unit_test(parameters_come_decoded),
        cmocka_unit_test(an_old_client_gets_an_answer_that_it_can_read),
        cmocka_unit_test(a_closing_server_cuts_what_runs),
        cmocka_unit_test(a_server_may_be_closed_by_a_handler),
        cmocka_unit_test(many_requests_in_one_read_are_all_answered),
        cmocka_unit_test(draining_closes_the_idle_and_lets_the_busy_finish),
        cmocka_unit_test(a_server_without_connections_is_drained_at_once),
        cmocka_unit_test(nothing_wakes_an_idle_loop),
        cmocka_unit_test(an_idle_connection_is_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
