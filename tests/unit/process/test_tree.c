#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "process/tree.h"

#define NOBODYS_MARK 3999999999u

/* One look is all that it takes: that it was a slow one is no reason to call it failed. */
static void waking_is_done_after_one_look_however_long_that_took(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++)
        assert_int_equal(nk_tree_freeze(NOBODYS_MARK, 1, false, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waking_is_done_after_one_look_however_long_that_took),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
