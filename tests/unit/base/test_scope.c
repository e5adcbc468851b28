#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

static int open_any(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static int is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static int leave_with_descriptor(int take)
{
    nk_auto_fd int fd = open_any();
    int number = fd;

    if (take)
        return nk_take_fd(&fd);
    return number;
}

static void a_descriptor_is_closed_where_its_scope_ends(void **state)
{
    int fd;

    (void)state;
    assert_false(is_open(leave_with_descriptor(0)));
    fd = leave_with_descriptor(1);
    assert_true(is_open(fd));
    nk_close_fd(&fd);
    assert_int_equal(fd, -1);
    nk_close_fd(&fd);
    assert_int_equal(fd, -1);
}

static void an_empty_slot_closes_nothing(void **state)
{
    (void)state;
    errno = 0;
    {
        nk_auto_fd int fd = -1;

        (void)fd;
    }
    assert_int_equal(errno, 0);
}

/* That the untaken one is freed is told by the leak sanitizer. */
static char *leave_with_memory(int take)
{
    nk_auto_free char *text = strdup("text");

    assert_non_null(text);
    return take ? nk_take_ptr(&text) : NULL;
}

static void memory_is_freed_unless_taken(void **state)
{
    char *text;

    (void)state;
    assert_null(leave_with_memory(0));
    text = leave_with_memory(1);
    assert_string_equal(text, "text");
    free(text);
}

static void a_taken_slot_is_empty(void **state)
{
    int value = 3;
    int *slot = &value;

    (void)state;
    assert_ptr_equal(nk_take_ptr(&slot), &value);
    assert_null(slot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_descriptor_is_closed_where_its_scope_ends),
        cmocka_unit_test(an_empty_slot_closes_nothing),
        cmocka_unit_test(memory_is_freed_unless_taken),
        cmocka_unit_test(a_taken_slot_is_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
