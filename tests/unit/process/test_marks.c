#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "process/marks.h"

static void a_mark_that_was_given_back_is_not_seen_again_soon(void **state)
{
    struct nk_marks m;
    gid_t first;

    (void)state;
    assert_int_equal(nk_marks_init(&m, 60000, 60009), 0);
    first = nk_marks_take(&m);
    nk_marks_give(&m, first);
    for (int i = 0; i < 9; i++) {
        gid_t next = nk_marks_take(&m);

        assert_int_not_equal(next, first);
        nk_marks_give(&m, next);
    }
    assert_int_equal(nk_marks_take(&m), first);
    nk_marks_fini(&m);
}

static void all_marks_are_given_out_once_then_none(void **state)
{
    struct nk_marks m;
    uint8_t seen[10] = {0};

    (void)state;
    assert_int_equal(nk_marks_init(&m, 60000, 60009), 0);
    for (int i = 0; i < 10; i++) {
        gid_t mark = nk_marks_take(&m);

        assert_in_range(mark, 60000, 60009);
        assert_int_equal(seen[mark - 60000]++, 0);
    }
    assert_int_equal(nk_marks_take(&m), 0);
    nk_marks_give(&m, 60004);
    nk_marks_give(&m, 60004); /* twice is once */
    nk_marks_give(&m, 1);     /* not one of ours */
    assert_int_equal(nk_marks_take(&m), 60004);
    assert_int_equal(nk_marks_take(&m), 0);
    nk_marks_fini(&m);
}

static void without_a_range_there_are_none(void **state)
{
    struct nk_marks m;

    (void)state;
    assert_int_equal(nk_marks_init(&m, 0, 0), 0);
    assert_int_equal(nk_marks_take(&m), 0);
    nk_marks_give(&m, 0);
    nk_marks_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mark_that_was_given_back_is_not_seen_again_soon),
        cmocka_unit_test(all_marks_are_given_out_once_then_none),
        cmocka_unit_test(without_a_range_there_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
