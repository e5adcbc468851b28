/* The file that says which uid an identity has: what it keeps, and what a crash may do to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "tenant/uid_map.h"

#define FIRST 70000
#define RECORD 76

struct fixture {
    char path[64];
    struct nk_uid_map map;
};

static int set_up(void **state)
{
    static struct fixture f;

    (void)snprintf(f.path, sizeof f.path, "/tmp/nook-map-XXXXXX");
    assert_non_null(mkdtemp(f.path));
    f.map = (struct nk_uid_map){.first = FIRST, .count = 8};
    f.map.dir = open(f.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(f.map.dir >= 0);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    (void)unlinkat(f->map.dir, NK_UID_MAP_FILE, 0);
    (void)close(f->map.dir);
    return rmdir(f->path);
}

/* Some identity's digest. */
static const uint8_t *digest(unsigned n)
{
    static uint8_t d[32];

    memset(d, (int)(n & 0xff), sizeof d);
    d[0] = (uint8_t)(n >> 8);
    return d;
}

static uid_t take(const struct fixture *f, unsigned n)
{
    struct nk_err err = {0};
    uid_t uid = 0;

    if (nk_uid_map_take(&f->map, digest(n), &uid, &err) < 0)
        fail_msg("%s", err.msg);
    return uid;
}

static enum nk_code refuse(const struct fixture *f, unsigned n)
{
    struct nk_err err = {0};
    uid_t uid;

    assert_int_equal(nk_uid_map_take(&f->map, digest(n), &uid, &err), -1);
    return err.code;
}

static off_t size_of(const struct fixture *f)
{
    struct stat st;

    assert_int_equal(fstatat(f->map.dir, NK_UID_MAP_FILE, &st, 0), 0);
    return st.st_size;
}

static void add_bytes(const struct fixture *f, const char *bytes, size_t len)
{
    int fd = openat(f->map.dir, NK_UID_MAP_FILE, O_WRONLY | O_APPEND | O_CLOEXEC);

    assert_int_equal(write(fd, bytes, len), len);
    (void)close(fd);
}

static void an_identity_keeps_its_uid(void **state)
{
    const struct fixture *f = *state;

    assert_int_equal(take(f, 1), FIRST);
    assert_int_equal(take(f, 2), FIRST + 1);
    assert_int_equal(take(f, 1), FIRST);
    assert_int_equal(take(f, 2), FIRST + 1);
    assert_int_equal(size_of(f), 2 * RECORD);
}

static void no_uid_is_given_out_twice_and_then_none_is_left(void **state)
{
    const struct fixture *f = *state;

    for (unsigned n = 0; n < 8; n++)
        assert_int_equal(take(f, n), FIRST + n);
    assert_int_equal(refuse(f, 8), NK_OVERLOADED);
    assert_int_equal(take(f, 7), FIRST + 7);
    assert_int_equal(size_of(f), 8 * RECORD);
}

static bool only_odd(uid_t uid, void *ctx)
{
    (void)ctx;
    return uid % 2 == 1;
}

static void a_uid_that_may_not_be_taken_is_passed_over(void **state)
{
    struct fixture *f = *state;

    f->map.may_take = only_odd;
    assert_int_equal(take(f, 1), FIRST + 1);
    assert_int_equal(take(f, 2), FIRST + 3);
    f->map.may_take = NULL;
    assert_int_equal(take(f, 3), FIRST);
    assert_int_equal(take(f, 2), FIRST + 3);
}

/* As many bytes of a record as a crash may have written. */
static void what_a_crash_cut_short_was_never_given_out(void **state)
{
    const struct fixture *f = *state;
    char whole[RECORD + 1];

    (void)snprintf(whole, sizeof whole, "%064d %010u\n", 0, FIRST + 1);
    assert_int_equal(take(f, 1), FIRST);
    for (size_t len = 1; len < RECORD; len++) {
        add_bytes(f, whole, len);
        assert_int_equal(take(f, 1), FIRST);
        assert_int_equal(size_of(f), RECORD);
    }
    add_bytes(f, whole, RECORD - 1);
    assert_int_equal(take(f, 2), FIRST + 1);
    assert_int_equal(take(f, 1), FIRST);
    assert_int_equal(size_of(f), 2 * RECORD);
}

static void room_that_was_never_filled_is_cut_off(void **state)
{
    const struct fixture *f = *state;
    const char nothing[RECORD] = {0};

    assert_int_equal(take(f, 1), FIRST);
    add_bytes(f, nothing, sizeof nothing);
    assert_int_equal(take(f, 2), FIRST + 1);
    assert_int_equal(size_of(f), 2 * RECORD);
}

static void damage_is_an_error_and_never_another_uid(void **state)
{
    const struct fixture *f = *state;
    int fd;

    assert_int_equal(take(f, 1), FIRST);
    assert_int_equal(take(f, 2), FIRST + 1);
    fd = openat(f->map.dir, NK_UID_MAP_FILE, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "?", 1, 10), 1);
    (void)close(fd);
    assert_int_equal(refuse(f, 1), NK_INTERNAL);
    assert_int_equal(refuse(f, 3), NK_INTERNAL);
    assert_int_equal(size_of(f), 2 * RECORD);
}

static void one_uid_for_two_identities_is_damage(void **state)
{
    const struct fixture *f = *state;
    char record[RECORD + 1];

    assert_int_equal(take(f, 1), FIRST);
    (void)snprintf(record, sizeof record, "%064d %010u\n", 7, FIRST);
    add_bytes(f, record, RECORD);
    add_bytes(f, record, RECORD);
    assert_int_equal(refuse(f, 2), NK_INTERNAL);
}

static void a_uid_outside_of_the_range_is_an_error(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(take(f, 1), FIRST);
    f->map.first = FIRST + 1;
    assert_int_equal(refuse(f, 1), NK_INTERNAL);
}

static void only_its_owner_reads_it(void **state)
{
    const struct fixture *f = *state;
    struct stat st;

    (void)take(f, 1);
    assert_int_equal(fstatat(f->map.dir, NK_UID_MAP_FILE, &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static void a_link_in_its_place_is_not_followed(void **state)
{
    const struct fixture *f = *state;

    assert_int_equal(symlinkat("/dev/null", f->map.dir, NK_UID_MAP_FILE), 0);
    assert_int_not_equal(refuse(f, 1), NK_OK);
}

static void the_used_ones_are_told(void **state)
{
    const struct fixture *f = *state;
    const uint8_t expected[8] = {1, 1, 0, 0, 0, 0, 0, 0};
    uint8_t used[8];

    (void)take(f, 1);
    (void)take(f, 2);
    assert_int_equal(nk_uid_map_used(&f->map, used, NULL), 0);
    assert_memory_equal(used, expected, sizeof used);
}

/* Each takes the same identities, in another order. */
static void several_processes_agree(void **state)
{
    struct fixture *f = *state;
    pid_t pids[4];

    f->map.count = 64;
    for (unsigned p = 0; p < NK_COUNT(pids); p++) {
        pids[p] = fork();
        for (unsigned n = 0; pids[p] == 0 && n < 64; n++) {
            uid_t uid;

            if (nk_uid_map_take(&f->map, digest((n * 7 + p * 16) % 64), &uid, NULL) < 0)
                _exit(1);
        }
        if (pids[p] == 0)
            _exit(0);
    }
    for (unsigned p = 0; p < NK_COUNT(pids); p++) {
        int status;

        assert_int_equal(waitpid(pids[p], &status, 0), pids[p]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(size_of(f), 64 * RECORD);
    assert_int_equal(refuse(f, 64), NK_OVERLOADED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_identity_keeps_its_uid, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_uid_is_given_out_twice_and_then_none_is_left, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_uid_that_may_not_be_taken_is_passed_over, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_a_crash_cut_short_was_never_given_out, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(room_that_was_never_filled_is_cut_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_is_an_error_and_never_another_uid, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_uid_for_two_identities_is_damage, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_uid_outside_of_the_range_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_its_owner_reads_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_link_in_its_place_is_not_followed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_used_ones_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(several_processes_agree, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
