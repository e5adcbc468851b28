#include "sandbox_dir.h"

#include <uv.h>

#include "base/clock.h"
#include "files/leftovers.h"
#include "files/temp.h"

#define LEFT ".nook-aaaaaaaaaaaaaaaaaaaaaaaa.part"
#define LEFT2 ".nook-bbbbbbbbbbbbbbbbbbbbbbbb.part"

static unsigned sweep(struct sandbox_dir *d)
{
    struct nk_leftovers left = {.roots = d->roots};
    unsigned removed;

    left.task.until_ns = UINT64_MAX;
    assert_int_equal(nk_leftovers_go(&left.task), 0);
    removed = left.removed;
    nk_leftovers_fini(&left);
    return removed;
}

static void what_nobody_works_on_goes_wherever_it_lies(void **state)
{
    struct sandbox_dir *d = *state;

    sandbox_dir_folder(d, "root/a");
    sandbox_dir_folder(d, "root/a/b");
    sandbox_dir_file(d, "root/a/b/" LEFT, "half");
    sandbox_dir_file(d, "root/" LEFT2, "");
    sandbox_dir_folder(d, "root/" LEFT);
    sandbox_dir_folder(d, "root/" LEFT "/deep");
    sandbox_dir_file(d, "root/" LEFT "/deep/file", "copied");
    sandbox_dir_file(d, "root/" LEFT "~", "a name behind it");
    assert_int_equal(sweep(d), 5);
    assert_false(sandbox_dir_has(d, "root/" LEFT));
    assert_false(sandbox_dir_has(d, "root/" LEFT2));
    assert_false(sandbox_dir_has(d, "root/a/b/" LEFT));
    assert_true(sandbox_dir_has(d, "root/a/b"));
    assert_true(sandbox_dir_has(d, "root/" LEFT "~"));
}

/* From `at`, below the base: as many folders in each other, and in the last one a file. */
static void make_deep(struct sandbox_dir *d, const char *at, unsigned levels, const char *file)
{
    int dir = openat(d->fd, at, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd;

    for (unsigned i = 0; i < levels; i++) {
        int inner;

        assert_true(dir >= 0);
        assert_int_equal(mkdirat(dir, "d", 0755), 0);
        inner = openat(dir, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)close(dir);
        dir = inner;
    }
    fd = openat(dir, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    (void)close(fd);
    (void)close(dir);
}

static void how_deep_it_lies_does_not_matter(void **state)
{
    struct sandbox_dir *d = *state;
    char path[1024] = "root/s";
    size_t len = strlen(path);

    sandbox_dir_folder(d, "root/s");
    make_deep(d, "root/s", 400, LEFT);
    for (int i = 0; i < 400; i++, len += 2)
        memcpy(path + len, "/d", 2);
    (void)snprintf(path + len, sizeof path - len, "/%s", LEFT);
    assert_true(sandbox_dir_has(d, path));
    assert_int_equal(sweep(d), 1);
    assert_false(sandbox_dir_has(d, path));
}

static void a_folder_goes_however_deep_it_is(void **state)
{
    struct sandbox_dir *d = *state;

    sandbox_dir_folder(d, "root/" LEFT);
    make_deep(d, "root/" LEFT, 4300, "file");
    sandbox_dir_folder(d, "root/" LEFT2);
    sandbox_dir_folder(d, "root/" LEFT2 "/locked");
    sandbox_dir_file(d, "root/" LEFT2 "/locked/file", "");
    assert_int_equal(fchmodat(d->fd, "root/" LEFT2 "/locked", 0, 0), 0);
    assert_int_equal(sweep(d), 4302 + 3);
    assert_false(sandbox_dir_has(d, "root/" LEFT));
    assert_false(sandbox_dir_has(d, "root/" LEFT2));
}

static void what_is_not_ours_stays(void **state)
{
    struct sandbox_dir *d = *state;

    sandbox_dir_folder(d, "outside/x");
    sandbox_dir_file(d, "outside/x/" LEFT, "");
    sandbox_dir_link(d, "../outside/x", "root/link");
    sandbox_dir_link(d, "nowhere", "root/" LEFT);
    sandbox_dir_file(d, "root/.nook-notes.part", "mine");
    sandbox_dir_file(d, "root/file", "mine");
    assert_int_equal(linkat(d->fd, "root/file", d->fd, "root/" LEFT2, 0), 0);
    assert_int_equal(sweep(d), 0);
    assert_true(sandbox_dir_has(d, "outside/x/" LEFT));
    assert_true(sandbox_dir_has(d, "root/" LEFT));
    assert_true(sandbox_dir_has(d, "root/" LEFT2));
    assert_true(sandbox_dir_has(d, "root/.nook-notes.part"));
}

static void what_is_being_written_stays(void **state)
{
    struct sandbox_dir *d = *state;
    int root = openat(d->fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = nk_temp_create(root, LEFT);
    int folder;

    assert_true(fd >= 0);
    sandbox_dir_folder(d, "root/" LEFT2);
    sandbox_dir_file(d, "root/" LEFT2 "/f", "");
    folder = openat(root, LEFT2, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(nk_temp_hold(folder), 0);
    assert_int_equal(sweep(d), 0);
    assert_true(sandbox_dir_has(d, "root/" LEFT2 "/f"));
    (void)close(fd);
    (void)close(folder);
    assert_int_equal(sweep(d), 3);
    (void)close(root);
}

static void the_pass_ends_after_so_many_entries(void **state)
{
    struct sandbox_dir *d = *state;
    struct nk_leftovers left = {.roots = d->roots, .seen = NK_LEFTOVERS_MAX - 1};

    sandbox_dir_file(d, "root/" LEFT, "");
    sandbox_dir_file(d, "root/" LEFT2, "");
    left.task.until_ns = UINT64_MAX;
    assert_int_equal(nk_leftovers_go(&left.task), 0);
    assert_int_equal(left.removed, 1);
    nk_leftovers_fini(&left);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sandbox_dir_setup, sandbox_dir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_nobody_works_on_goes_wherever_it_lies),
        TEST(how_deep_it_lies_does_not_matter),
        TEST(a_folder_goes_however_deep_it_is),
        TEST(what_is_not_ours_stays),
        TEST(what_is_being_written_stays),
        TEST(the_pass_ends_after_so_many_entries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
