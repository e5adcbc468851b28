#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/sse_read.h"

/* Everything the reader gives for `text`, as "event|id|data;" one after another. */
static void read_all(const char *text, size_t len, size_t step, struct nk_buf *out)
{
    struct nk_sse_read r;
    struct nk_sse_event e;
    struct nk_err err;

    nk_sse_read_init(&r, 4096);
    for (size_t at = 0; at < len; at += step) {
        int rc;

        nk_buf_add(&r.in, text + at, at + step < len ? step : len - at);
        while ((rc = nk_sse_read_next(&r, &e, &err)) == 1) {
            assert_int_equal(e.len, strlen(e.data));
            if (e.id == NK_SSE_READ_NO_ID)
                nk_buf_add_fmt(out, "%s|-|%s;", e.event, e.data);
            else
                nk_buf_add_fmt(out, "%s|%llu|%s;", e.event, (unsigned long long)e.id, e.data);
        }
        assert_int_equal(rc, 0);
    }
    nk_buf_add_char(out, '\0');
    nk_sse_read_fini(&r);
}

static void expect(const char *text, const char *expected)
{
    size_t len = strlen(text);

    for (size_t step = 1; step <= len; step++) {
        struct nk_buf got = {0};

        read_all(text, len, step, &got);
        assert_string_equal((const char *)nk_buf_front(&got), expected);
        nk_buf_fini(&got);
    }
}

static void events_are_the_same_however_the_bytes_are_cut(void **state)
{
    (void)state;
    expect("event: started\nid: 0\ndata: {\"id\":\"a\"}\n\n"
           ": keepalive\n\n"
           "event: stdout\nid: 12\ndata: {\"text\":\"x\"}\n\n"
           "event: exit\nid: 12\ndata: {}\n\n",
           "started|0|{\"id\":\"a\"};stdout|12|{\"text\":\"x\"};exit|12|{};");
}

static void each_line_end_of_the_standard_is_understood(void **state)
{
    (void)state;
    expect("event: a\r\ndata: 1\r\n\r\nevent: b\rdata: 2\r\rdata: 3\n\r\ndata: 4\r\n\n",
           "a|-|1;b|-|2;message|-|3;message|-|4;");
}

static void data_lines_are_joined_by_line_feeds(void **state)
{
    (void)state;
    expect("data: a\ndata:b\ndata\ndata:  c\n\n", "message|-|a\nb\n\n c;");
}

static void an_event_without_data_is_none_and_its_name_is_forgotten(void **state)
{
    (void)state;
    expect("event: lost\n\ndata: 1\n\n", "message|-|1;");
}

static void a_byte_order_mark_is_passed_over_only_at_the_start(void **state)
{
    (void)state;
    expect("\xef\xbb\xbf"
           "data: 1\n\n\xef\xbb\xbf"
           "data: 2\n\n",
           "message|-|1;");
}

static void an_id_stays_until_the_next_and_only_numbers_count(void **state)
{
    (void)state;
    expect("id: 7\ndata: 1\n\ndata: 2\n\nid: 8x\ndata: 3\n\nid\ndata: 4\n\n"
           "id: 99999999999999999999\ndata: 5\n\n",
           "message|7|1;message|7|2;message|-|3;message|-|4;message|-|5;");
}

static void unknown_fields_and_an_unfinished_event_give_nothing(void **state)
{
    (void)state;
    expect("retry: 5\nfoo: bar\nnonsense\ndata: 1\n", "");
}

static int feed_endless(const char *piece)
{
    struct nk_sse_read r;
    struct nk_sse_event e;
    struct nk_err err = {0};
    int rc = 0;

    nk_sse_read_init(&r, 1000);
    for (int i = 0; i < 1000 && rc == 0; i++) {
        nk_buf_add_str(&r.in, piece);
        rc = nk_sse_read_next(&r, &e, &err);
    }
    if (rc < 0)
        assert_int_equal(err.code, NK_TOO_LARGE);
    nk_sse_read_fini(&r);
    return rc;
}

static void an_event_that_never_ends_is_refused(void **state)
{
    (void)state;
    assert_int_equal(feed_endless("data: and on\n"), -1);
    assert_int_equal(feed_endless("dataandon"), -1);
    assert_int_equal(feed_endless(": a comment is no event\n"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_the_same_however_the_bytes_are_cut),
        cmocka_unit_test(each_line_end_of_the_standard_is_understood),
        cmocka_unit_test(data_lines_are_joined_by_line_feeds),
        cmocka_unit_test(an_event_without_data_is_none_and_its_name_is_forgotten),
        cmocka_unit_test(a_byte_order_mark_is_passed_over_only_at_the_start),
        cmocka_unit_test(an_id_stays_until_the_next_and_only_numbers_count),
        cmocka_unit_test(unknown_fields_and_an_unfinished_event_give_nothing),
        cmocka_unit_test(an_event_that_never_ends_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
