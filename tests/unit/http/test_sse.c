#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "http/sse.h"

static void assert_text(struct nk_buf *b, const char *text)
{
    assert_int_equal(nk_buf_left(b), strlen(text));
    assert_memory_equal(nk_buf_front(b), text, strlen(text));
    nk_buf_fini(b);
}

static void an_event_has_name_id_and_one_data_line(void **state)
{
    struct nk_buf b = {0};

    (void)state;
    nk_sse_begin(&b, "stdout", 18446744073709551614u);
    nk_buf_add_str(&b, "{\"text\":\"a\"}");
    nk_sse_end(&b);
    assert_text(&b, "event: stdout\nid: 18446744073709551614\ndata: {\"text\":\"a\"}\n\n");
}

static void an_event_without_an_id_has_no_id_line(void **state)
{
    struct nk_buf b = {0};

    (void)state;
    nk_sse_begin(&b, "exit", NK_SSE_NO_ID);
    nk_buf_add_str(&b, "{}");
    nk_sse_end(&b);
    assert_text(&b, "event: exit\ndata: {}\n\n");
}

static void the_first_event_may_have_id_0(void **state)
{
    struct nk_buf b = {0};

    (void)state;
    nk_sse_begin(&b, "started", 0);
    nk_sse_end(&b);
    assert_text(&b, "event: started\nid: 0\ndata: \n\n");
}

static void a_comment_is_a_line_that_readers_skip(void **state)
{
    struct nk_buf b = {0};

    (void)state;
    nk_sse_comment(&b, "keepalive");
    assert_text(&b, ": keepalive\n\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_has_name_id_and_one_data_line),
        cmocka_unit_test(an_event_without_an_id_has_no_id_line),
        cmocka_unit_test(the_first_event_may_have_id_0),
        cmocka_unit_test(a_comment_is_a_line_that_readers_skip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
