#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/arena.h"

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

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    struct nk_arena a = {0};
    uint8_t *pieces[300];

    (void)state;
    for (size_t i = 0; i < 300; i++) {
        pieces[i] = nk_arena_alloc(&a, i);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        for (size_t k = 0; k < i; k++)
            assert_int_equal(pieces[i][k], 0);
        memset(pieces[i], (int)(i % 251 + 1), i);
    }
    for (size_t i = 0; i < 300; i++) {
        for (size_t k = 0; k < i; k++)
            assert_int_equal(pieces[i][k], i % 251 + 1);
    }
    assert_true(a.used >= 300 * 299 / 2);
    nk_arena_fini(&a);
    assert_null(a.blocks);
    assert_int_equal(a.used, 0);
}

static void a_large_piece_leaves_the_newest_block_its_room(void **state)
{
    struct nk_arena a = {0};
    char *small, *next;

    (void)state;
    small = nk_arena_alloc(&a, 16);
    memset(nk_arena_alloc(&a, 100000), 7, 100000);
    next = nk_arena_alloc(&a, 16);
    assert_ptr_equal(next, small + 16);
    nk_arena_fini(&a);
}

static void copies_end_in_nul(void **state)
{
    struct nk_arena a = {0};
    const char bytes[] = {'a', 'b', 'c'};

    (void)state;
    assert_string_equal(nk_arena_dup(&a, bytes, 3), "abc");
    assert_string_equal(nk_arena_dup(&a, NULL, 0), "");
    assert_string_equal(nk_arena_str(&a, "hello"), "hello");
    nk_arena_fini(&a);
}

static void impossible_sizes_are_refused(void **state)
{
    struct nk_arena a = {0};

    (void)state;
    assert_null(nk_arena_alloc(&a, SIZE_MAX));
    assert_null(nk_arena_alloc(&a, SIZE_MAX / 2 - 64));
    assert_null(nk_arena_dup(&a, "", SIZE_MAX));
    assert_int_equal(a.used, 0);
    assert_string_equal(nk_arena_str(&a, "goes on"), "goes on");
    nk_arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(a_large_piece_leaves_the_newest_block_its_room),
        cmocka_unit_test(copies_end_in_nul),
        cmocka_unit_test(impossible_sizes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
