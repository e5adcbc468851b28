#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "lifetime/lasting.h"

#define HOUR UINT64_C(3600000)

static char folder[64];

static void write_words(const char *boot, uint64_t saved, int64_t wall, uint64_t expires)
{
    char path[96];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/lifetime", folder);
    f = fopen(path, "we");
    assert_non_null(f);
    (void)fprintf(f,
                  "version 1\nboot %s\nsaved %lu %ld\ncreated 5\nexpires %lu\nidle 7\nactive "
                  "%lu\noptions 1 2\nid a b\n",
                  boot, (unsigned long)saved, (long)wall, (unsigned long)expires,
                  (unsigned long)saved);
    (void)fclose(f);
}

static int set_up(void **state)
{
    (void)state;
    memcpy(folder, "/tmp/nook-lasting-XXXXXX", 25);
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    nk_lasting_remove(folder);
    return rmdir(folder); /* fails where something else was left */
}

static void what_is_written_is_read_whole(void **state)
{
    const struct nk_lasting l = {"box 1", 11, 12, 13, 14, 15, 16};
    struct nk_lasting got;

    (void)state;
    assert_int_equal(nk_lasting_read(folder, "box 1", &got), -ENOENT);
    assert_int_equal(nk_lasting_write(folder, &l), 0);
    assert_int_equal(nk_lasting_write(folder, &l), 0);
    assert_int_equal(nk_lasting_read(folder, "box 1", &got), 0);
    assert_string_equal(got.id, "box 1");
    assert_int_equal(got.created_ms, 11);
    assert_int_equal(got.expires_ms, 12);
    assert_int_equal(got.idle_ms, 13);
    assert_int_equal(got.active_ms, 14);
    assert_int_equal(got.ttl_option_ms, 15);
    assert_int_equal(got.idle_option_ms, 16);
}

static void another_sandboxs_is_not_read(void **state)
{
    const struct nk_lasting l = {.id = "one"};
    struct nk_lasting got;

    (void)state;
    assert_int_equal(nk_lasting_write(folder, &l), 0);
    assert_int_equal(nk_lasting_read(folder, "on", &got), -ENOENT);
    assert_int_equal(nk_lasting_read(folder, "one more", &got), -ENOENT);
}

static void a_broken_file_is_as_none(void **state)
{
    struct nk_lasting got;

    (void)state;
    write_words("b\ncut", 1, 1, 1);
    assert_int_equal(nk_lasting_read(folder, "a b", &got), -EINVAL);
}

static void a_folder_that_others_may_change_keeps_nothing(void **state)
{
    const struct nk_lasting l = {.id = "one"};

    (void)state;
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(nk_lasting_write(folder, &l), -EPERM);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(nk_lasting_write("/nonexistent", &l), -ENOENT);
}

/* The machine was started again: 3 hours were left, and the wall clock tells what has passed. */
static uint64_t left_after(int64_t wall_then, int64_t wall_now)
{
    struct nk_lasting got;

    write_words("another-boot", 50 * HOUR, wall_then, 53 * HOUR);
    nk_clock_fake(2 * HOUR, wall_now);
    assert_int_equal(nk_lasting_read(folder, "a b", &got), 0);
    nk_clock_real();
    return got.expires_ms > 2 * HOUR ? got.expires_ms - 2 * HOUR : 0;
}

static void another_boot_goes_on_by_the_wall_clock(void **state)
{
    const int64_t then = 1000 * (int64_t)HOUR;

    (void)state;
    assert_int_equal(left_after(then, then + (int64_t)HOUR), 2 * HOUR);
    assert_int_equal(left_after(then, then + 5 * (int64_t)HOUR), 0);
}

static void a_wall_clock_that_went_back_gives_no_more_time(void **state)
{
    const int64_t then = 1000 * (int64_t)HOUR;

    (void)state;
    assert_int_equal(left_after(then, then - 500 * (int64_t)HOUR), 3 * HOUR);
}

static void the_same_boot_does_not_ask_the_wall_clock(void **state)
{
    const struct nk_lasting l = {.id = "a b", .expires_ms = 53 * HOUR};
    struct nk_lasting got;

    (void)state;
    if (access("/proc/sys/kernel/random/boot_id", R_OK) < 0)
        skip();
    nk_clock_fake(50 * HOUR, 1000 * (int64_t)HOUR);
    assert_int_equal(nk_lasting_write(folder, &l), 0);
    nk_clock_fake(50 * HOUR, 9000 * (int64_t)HOUR);
    assert_int_equal(nk_lasting_read(folder, "a b", &got), 0);
    nk_clock_real();
    assert_int_equal(got.expires_ms, 53 * HOUR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_read_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_sandboxs_is_not_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_broken_file_is_as_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_that_others_may_change_keeps_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(another_boot_goes_on_by_the_wall_clock, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wall_clock_that_went_back_gives_no_more_time, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_same_boot_does_not_ask_the_wall_clock, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
