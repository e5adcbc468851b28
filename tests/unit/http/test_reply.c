#include "toy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOST " HTTP/1.1\r\nHost: x\r\n"
#define GET(path) "GET " path HOST "\r\n"

/* Joins the chunks behind the head; returns how many bytes they hold, or -1. */
static long unchunk(struct toy *t)
{
    char *at = strstr(t->reply, "\r\n\r\n") + 4;
    long total = 0;

    for (;;) {
        char *end;
        unsigned long n = strtoul(at, &end, 16);

        if (end == at || strncmp(end, "\r\n", 2) != 0)
            return -1;
        at = end + 2 + n;
        if (strncmp(at, "\r\n", 2) != 0)
            return -1;
        at += 2;
        if (n == 0)
            return at == t->reply + t->reply_len ? total : -1;
        total += (long)n;
    }
}

static void a_stream_without_a_length_is_chunked(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/stream?size=10"));
    toy_expect(&t, "\r\n\r\na\r\nxxxxxxxxxx\r\n0\r\n\r\n");
    assert_non_null(toy_find(&t, "Transfer-Encoding: chunked\r\n"));
    assert_null(toy_find(&t, "Content-Length"));
    toy_forget(&t);
    toy_say(&t, GET("/stream?size=0"));
    toy_expect(&t, "\r\n\r\n0\r\n\r\n");
    toy_forget(&t);
    toy_say(&t, GET("/stream?size=1000000"));
    toy_expect(&t, "\r\n0\r\n\r\n");
    assert_int_equal(unchunk(&t), 1000000);
    assert_int_equal(t.closed, 3);
    toy_stop(&t);
}

static void a_stream_with_a_length_is_not(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/stream?size=10&fixed=1"));
    toy_expect(&t, "\r\n\r\nxxxxxxxxxx");
    assert_non_null(toy_find(&t, "Content-Length: 10\r\n"));
    assert_null(toy_find(&t, "chunked"));
    toy_forget(&t);
    toy_say(&t, GET("/names/after"));
    toy_expect(&t, "\r\n\r\nafter");
    toy_stop(&t);
}

static void a_source_that_breaks_off_cuts_the_connection(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    t.source.end = NK_PULL_FAIL;
    toy_say(&t, GET("/stream?size=10"));
    toy_expect_end(&t);
    assert_null(toy_find(&t, "\r\n0\r\n"));
    assert_int_equal(t.closed, 1);
    toy_stop(&t);
}

static void a_source_that_has_nothing_is_asked_again_when_it_calls(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    t.source.dry = true;
    toy_say(&t, GET("/stream?size=10"));
    toy_expect(&t, "\r\n\r\n");
    toy_turn(&t);
    assert_int_equal(t.source.pulled, 0);
    t.source.dry = false;
    nk_reply_wake(t.held);
    assert_int_equal(t.source.pulled, 0);
    toy_expect(&t, "xxxxxxxxxx\r\n0\r\n\r\n");
    toy_stop(&t);
}

static void a_reader_that_stalls_holds_little(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/stream?size=100000000"));
    toy_turn(&t);
    assert_non_null(t.held);
    assert_true(nk_buf_left(&t.held->out.head) + nk_buf_left(&t.held->out.body) <=
                NK_REPLY_QUEUE / 2);
    /* The socket pair has the system's buffer; a connection that was accepted has a smaller one. */
    assert_true(t.source.pulled < 4 * NK_REPLY_QUEUE);
    toy_stop(&t);
}

static void a_slow_reader_gets_every_byte(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/stream?size=3000000"));
    toy_turn(&t);
    assert_int_equal(t.closed, 0);
    toy_expect(&t, "\r\n0\r\n\r\n");
    assert_int_equal(unchunk(&t), 3000000);
    assert_int_equal(t.closed, 1);
    assert_int_equal(t.gone, 0);
    toy_stop(&t);
}

static void a_client_that_hangs_up_ends_the_request_at_once(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/later"));
    toy_wait(&t, &t.handled, 1);
    toy_drop(&t);
    toy_wait(&t, &t.closed, 1);
    assert_int_equal(t.gone, 1);
    assert_int_equal(t.half, 0);
    assert_int_equal(nk_server_stats(t.server)->open, 0);
    toy_stop(&t);
}

static void a_client_that_hangs_up_in_a_stream_ends_it(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/stream?size=100000000"));
    toy_turn(&t);
    toy_drop(&t);
    toy_wait(&t, &t.closed, 1);
    assert_int_equal(t.gone, 1);
    toy_stop(&t);
}

static void a_half_closed_client_still_gets_its_answer(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/later"));
    toy_wait(&t, &t.handled, 1);
    assert_int_equal(shutdown(t.fd, SHUT_WR), 0);
    toy_wait(&t, &t.half, 1);
    toy_turn(&t);
    assert_int_equal(t.half, 1);
    assert_int_equal(t.closed, 0);
    nk_reply_bytes(t.held, 200, NULL, "still", 5);
    toy_expect(&t, "\r\n\r\nstill");
    toy_expect_end(&t);
    assert_int_equal(t.gone, 0);
    toy_stop(&t);
}

static void a_half_closed_client_that_leaves_then_is_noticed(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/later"));
    toy_wait(&t, &t.handled, 1);
    assert_int_equal(shutdown(t.fd, SHUT_WR), 0);
    toy_wait(&t, &t.half, 1);
    /* Level-triggered: the half that is closed must not wake the loop again. */
    toy_turn(&t);
    assert_int_equal(uv_backend_timeout(&t.loop), -1);
    toy_drop(&t);
    toy_wait(&t, &t.closed, 1);
    assert_int_equal(t.gone, 1);
    toy_stop(&t);
}

static void pipelined_requests_before_a_half_close_are_all_answered(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/names/a") GET("/later") GET("/names/b"));
    assert_int_equal(shutdown(t.fd, SHUT_WR), 0);
    toy_wait(&t, &t.handled, 1);
    toy_turn(&t);
    nk_reply_bytes(t.held, 200, NULL, "L", 1);
    toy_expect_end(&t);
    assert_non_null(toy_find(&t, "\r\n\r\na"));
    assert_non_null(toy_find(&t, "\r\n\r\nL"));
    assert_non_null(toy_find(&t, "\r\n\r\nb"));
    toy_stop(&t);
}

static void check_file(size_t size)
{
    struct toy t;
    char text[128];
    const char *body;

    toy_start(&t);
    snprintf(text, sizeof text, GET("/file?size=%zu") GET("/names/after"), size);
    toy_say(&t, text);
    toy_expect(&t, "\r\n\r\nafter");
    body = toy_find(&t, "\r\n\r\n") + 4;
    snprintf(text, sizeof text, "Content-Length: %zu\r\n", size);
    assert_non_null(toy_find(&t, text));
    assert_memory_equal(body + size, "HTTP/1.1 200", 12);
    for (size_t i = 0; i < size; i += 1 + size / 5000)
        assert_int_equal(body[i], 'a' + (int)(i % 26));
    assert_int_equal(t.closed, 1);
    toy_stop(&t);
}

static void a_file_arrives_whole_whatever_its_size(void **state)
{
    (void)state;
    check_file(0);
    check_file(1);
    check_file(NK_PIECE_SIZE);
    check_file(NK_PIECE_SIZE + 1);
    check_file(3 * 1024 * 1024 + 17);
}

static void a_file_that_became_shorter_cuts_the_connection(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/file?size=10&shown=11"));
    toy_expect_end(&t);
    assert_int_equal(t.closed, 1);
    toy_forget(&t);
    toy_drop(&t);
    toy_connect(&t);
    toy_say(&t, GET("/file?size=2000000&shown=2100000"));
    toy_expect_end(&t);
    assert_true(t.reply_len < 2100000);
    assert_int_equal(t.closed, 2);
    toy_stop(&t);
}

static void a_client_may_leave_while_a_file_is_read(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/file?size=3000000"));
    toy_drop(&t);
    toy_wait(&t, &t.closed, 1);
    assert_int_equal(t.gone, 1);
    toy_stop(&t);
}

static void a_plain_request_to_a_websocket_is_told_to_upgrade(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/ws"));
    toy_expect(&t, "HTTP/1.1 426 Upgrade Required\r\n");
    assert_null(t.held);
    toy_stop(&t);
}

static void after_an_upgrade_bytes_go_both_ways(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    t.source.dry = true;
    toy_say(
        &t,
        "GET /ws" HOST "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nfirst");
    toy_expect(&t, "\r\n\r\n");
    assert_non_null(toy_find(&t, "HTTP/1.1 101 Switching Protocols\r\n"));
    assert_non_null(toy_find(&t, "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
    assert_non_null(toy_find(&t, "Sec-WebSocket-Accept: yes\r\n"));
    assert_null(toy_find(&t, "Content-Length"));
    toy_say(&t, "second");
    assert_int_equal(t.got_len, 11);
    assert_memory_equal(t.got, "firstsecond", 11);
    nk_req_pause_body(t.held, true);
    toy_say(&t, "third");
    assert_int_equal(t.got_len, 11);
    nk_req_pause_body(t.held, false);
    toy_turn(&t);
    assert_int_equal(t.got_len, 16);
    assert_int_equal(shutdown(t.fd, SHUT_WR), 0);
    toy_wait(&t, &t.ended, 1);
    t.source.dry = false;
    nk_reply_wake(t.held);
    toy_expect(&t, "\r\n\r\nxxxx");
    toy_expect_end(&t);
    assert_int_equal(t.closed, 1);
    assert_int_equal(t.gone, 0);
    assert_int_equal(t.ended, 1);
    toy_stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_without_a_length_is_chunked),
        cmocka_unit_test(a_stream_with_a_length_is_not),
        cmocka_unit_test(a_source_that_breaks_off_cuts_the_connection),
        cmocka_unit_test(a_source_that_has_nothing_is_asked_again_when_it_calls),
        cmocka_unit_test(a_reader_that_stalls_holds_little),
        cmocka_unit_test(a_slow_reader_gets_every_byte),
        cmocka_unit_test(a_client_that_hangs_up_ends_the_request_at_once),
        cmocka_unit_test(a_client_that_hangs_up_in_a_stream_ends_it),
        cmocka_unit_test(a_half_closed_client_still_gets_its_answer),
        cmocka_unit_test(a_half_closed_client_that_leaves_then_is_noticed),
        cmocka_unit_test(pipelined_requests_before_a_half_close_are_all_answered),
        cmocka_unit_test(a_file_arrives_whole_whatever_its_size),
        cmocka_unit_test(a_file_that_became_shorter_cuts_the_connection),
        cmocka_unit_test(a_client_may_leave_while_a_file_is_read),
        cmocka_unit_test(a_plain_request_to_a_websocket_is_told_to_upgrade),
        cmocka_unit_test(after_an_upgrade_bytes_go_both_ways),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
