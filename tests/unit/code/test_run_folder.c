#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "code/run_folder.h"

static char top[64];

static int setup(void **state)
{
    (void)state;
    (void)snprintf(top, sizeof top, "/tmp/nook-folder-XXXXXX");
    return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(top);
}

static void clear(struct nk_run_folder *f)
{
    while (nk_run_folder_clear(f, UINT64_MAX) > 0)
        ;
    assert_false(nk_run_folder_is_there(f));
}

static void it_is_made_filled_and_removed(void **state)
{
    const char *const tops[] = {"/nonexistent", top, NULL};
    struct nk_run_folder f = {0};
    struct stat st;
    char path[256];

    (void)state;
    nk_run_folder_init(&f);
    assert_int_equal(nk_run_folder_make(&f, tops, NULL), 0);
    assert_string_equal(f.top, top);
    assert_int_equal(nk_run_folder_write(&f, "code", "ab", "cd", 2, NULL), 0);
    assert_int_equal(nk_run_folder_write(&f, "code", NULL, "x", 1, NULL), -1); /* once */
    nk_run_folder_link(&f, "/etc");
    assert_int_equal(stat(f.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    (void)snprintf(path, sizeof path, "%s/code", f.path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_size, 4);
    (void)snprintf(path, sizeof path, "%s/passwd", f.path);
    assert_int_equal(access(path, R_OK), 0);
    clear(&f);
    assert_int_equal(access("/etc/passwd", R_OK), 0);
}

static void what_was_put_into_it_goes_too(void **state)
{
    const char *const tops[] = {top, NULL};
    struct nk_run_folder f = {0};
    char path[512];

    (void)state;
    nk_run_folder_init(&f);
    assert_int_equal(nk_run_folder_make(&f, tops, NULL), 0);
    (void)snprintf(path, sizeof path, "%s/a", f.path);
    assert_int_equal(mkdir(path, 0755), 0);
    (void)snprintf(path, sizeof path, "%s/a/b", f.path);
    assert_int_equal(mkdir(path, 0), 0);
    (void)snprintf(path, sizeof path, "%s/a/up", f.path);
    assert_int_equal(symlink("..", path), 0);
    clear(&f);
}

static void nothing_is_left_where_none_can_be_made(void **state)
{
    const char *const tops[] = {"/nonexistent", "/proc", NULL};
    struct nk_run_folder f = {0};
    struct nk_err err;

    (void)state;
    nk_run_folder_init(&f);
    assert_int_equal(nk_run_folder_make(&f, tops, &err), -1);
    assert_false(nk_run_folder_is_there(&f));
    assert_int_equal(nk_run_folder_clear(&f, UINT64_MAX), 0);
    nk_run_folder_fini(&f);
}

static void one_in_use_is_told_from_one_that_was_left(void **state)
{
    const char *const tops[] = {top, NULL};
    struct nk_run_folder f = {0}, left;
    int parent = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_true(parent >= 0);
    nk_run_folder_init(&f);
    assert_true(nk_run_folder_is_name(f.name));
    assert_false(nk_run_folder_is_name(".nook-run-"));
    assert_false(nk_run_folder_is_name(".nook-run-../aaaaaaaaaaaaaaaaaaaaa"));
    assert_int_equal(nk_run_folder_make(&f, tops, NULL), 0);
    assert_true(nk_run_folder_is_held(parent, f.name));
    assert_int_equal(nk_run_folder_adopt(&left, top, f.name), 0);
    nk_run_folder_fini(&f); /* as when its agent dies */
    assert_false(nk_run_folder_is_held(parent, left.name));
    clear(&left);
    assert_true(nk_run_folder_is_held(parent, left.name)); /* what is not there */
    (void)close(parent);
}

static void a_cache_is_where_the_user_may_write(void **state)
{
    struct nk_run_folder f = {.top = top, .path = top};
    char home[80], env[128], want[128], out[NK_RUN_FOLDER_PATH];
    const char *const by_home[] = {home, NULL};
    const char *const by_xdg[] = {"XDG_CACHE_HOME=/x", home, NULL};
    const char *const by_none[] = {"HOME=/proc", NULL};

    (void)state;
    (void)snprintf(home, sizeof home, "HOME=%s", top);
    (void)snprintf(want, sizeof want, "%s/.cache", top);
    nk_run_folder_cache(&f, by_home, out);
    assert_string_equal(out, want);
    nk_run_folder_cache(&f, by_xdg, out);
    assert_string_equal(out, "/x");
    (void)snprintf(env, sizeof env, "%s/.nook-cache-%u", top, geteuid());
    if (geteuid() != 0) {
        nk_run_folder_cache(&f, by_none, out);
        assert_string_equal(out, env);
        assert_int_equal(rmdir(env), 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_made_filled_and_removed),
        TEST(what_was_put_into_it_goes_too),
        TEST(nothing_is_left_where_none_can_be_made),
        TEST(one_in_use_is_told_from_one_that_was_left),
        TEST(a_cache_is_where_the_user_may_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
