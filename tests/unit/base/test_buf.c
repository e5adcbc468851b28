#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"

/* A sanitizer's allocator must answer as the real one does when memory is short. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void assert_text(const struct nk_buf *b, const char *want)
{
    assert_int_equal(nk_buf_left(b), strlen(want));
    assert_memory_equal(nk_buf_front(b), want, strlen(want));
}

static void additions_stand_in_order(void **state)
{
    struct nk_buf b = {0};

    (void)state;
    nk_buf_add_str(&b, "a=");
    nk_buf_add_u64(&b, 0);
    nk_buf_add_char(&b, ' ');
    nk_buf_add_u64(&b, UINT64_MAX);
    nk_buf_add(&b, NULL, 0);
    nk_buf_add_fmt(&b, " %s-%d", "x", -7);
    assert_text(&b, "a=0 18446744073709551615 x--7");
    nk_buf_fini(&b);
}

static void a_long_format_is_not_cut(void **state)
{
    struct nk_buf b = {0};
    char want[1001];

    (void)state;
    memset(want, 'w', 1000);
    want[1000] = '\0';
    nk_buf_add_fmt(&b, "%s", want);
    assert_text(&b, want);
    nk_buf_fini(&b);
}

static void what_was_consumed_makes_room(void **state)
{
    struct nk_buf b = {.max = 256};
    uint8_t block[200], want[200];
    uint8_t next_in = 0, next_out = 0;

    (void)state;
    for (int round = 0; round < 1000; round++) {
        size_t n = (size_t)round % 97 + 1;

        for (size_t i = 0; i < n; i++)
            block[i] = next_in++;
        nk_buf_add(&b, block, n);
        assert_false(b.failed);
        if (nk_buf_left(&b) < 120)
            continue;
        n = nk_buf_left(&b) - 13;
        for (size_t i = 0; i < n; i++)
            want[i] = next_out++;
        assert_memory_equal(nk_buf_front(&b), want, n);
        nk_buf_consume(&b, n);
    }
    assert_true(b.cap <= 256);
    nk_buf_fini(&b);
}

static void an_emptied_buffer_starts_again_at_the_front(void **state)
{
    struct nk_buf b = {0};

    (void)state;
    nk_buf_add_str(&b, "hello");
    nk_buf_consume(&b, 2);
    assert_text(&b, "llo");
    nk_buf_consume(&b, 3);
    assert_int_equal(b.off, 0);
    assert_int_equal(b.len, 0);
    nk_buf_fini(&b);
}

static void growing_keeps_what_is_left(void **state)
{
    struct nk_buf b = {0};
    char want[4000];

    (void)state;
    memset(want, 'k', sizeof want);
    nk_buf_add(&b, want, 200);
    nk_buf_consume(&b, 50);
    nk_buf_add(&b, want, 3000);
    assert_int_equal(nk_buf_left(&b), 3150);
    assert_memory_equal(nk_buf_front(&b), want, 3150);
    nk_buf_fini(&b);
}

static void the_bound_is_exact_and_failure_sticks(void **state)
{
    struct nk_buf b = {.max = 10};

    (void)state;
    nk_buf_add_str(&b, "0123456789");
    assert_false(b.failed);
    assert_text(&b, "0123456789");
    nk_buf_add_char(&b, 'x');
    assert_true(b.failed);
    nk_buf_consume(&b, 5);
    nk_buf_add_char(&b, 'y');
    assert_text(&b, "56789");
    assert_null(nk_buf_reserve(&b, 1));
    nk_buf_fini(&b);
    assert_false(b.failed);
    assert_int_equal(b.max, 10);
    nk_buf_add_str(&b, "again");
    assert_text(&b, "again");
    nk_buf_fini(&b);
}

static void a_refused_allocation_keeps_what_is_there(void **state)
{
    struct nk_buf b = {0};

    (void)state;
    nk_buf_add_str(&b, "kept");
    assert_null(nk_buf_reserve(&b, SIZE_MAX / 2 - 64));
    assert_true(b.failed);
    assert_text(&b, "kept");
    nk_buf_fini(&b);
    nk_buf_add_str(&b, "kept");
    assert_null(nk_buf_reserve(&b, SIZE_MAX));
    assert_true(b.failed);
    nk_buf_fini(&b);
}

static void an_untouched_buffer_has_an_empty_front(void **state)
{
    struct nk_buf b = {0};

    (void)state;
    assert_null(nk_buf_front(&b));
    assert_int_equal(nk_buf_left(&b), 0);
    nk_buf_consume(&b, 0);
    nk_buf_fini(&b);
}

static void reserving_nothing_gives_a_place(void **state)
{
    struct nk_buf b = {0};

    (void)state;
    assert_non_null(nk_buf_reserve(&b, 0));
    nk_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(additions_stand_in_order),
        cmocka_unit_test(a_long_format_is_not_cut),
        cmocka_unit_test(what_was_consumed_makes_room),
        cmocka_unit_test(an_emptied_buffer_starts_again_at_the_front),
        cmocka_unit_test(growing_keeps_what_is_left),
        cmocka_unit_test(the_bound_is_exact_and_failure_sticks),
        cmocka_unit_test(a_refused_allocation_keeps_what_is_there),
        cmocka_unit_test(an_untouched_buffer_has_an_empty_front),
        cmocka_unit_test(reserving_nothing_gives_a_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
