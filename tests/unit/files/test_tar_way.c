#include "sandbox_dir.h"

#include <errno.h>

#include "files/tar_way.h"

struct way {
    struct nk_tar_way way;
    struct sandbox_dir *d;
    int dest;
};

static void begin(struct way *w, void **state)
{
    w->d = *state;
    w->dest = open(w->d->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(w->dest >= 0);
    nk_tar_way_init(&w->way, w->dest);
}

static void end(struct way *w)
{
    nk_tar_way_fini(&w->way);
    assert_int_equal(close(w->dest), 0);
}

/* The descriptor that the way gives, with `leaf` checked. */
static int enter(struct way *w, const char *path, bool make, const char *leaf)
{
    const char *name = NULL;
    int dir = nk_tar_way_enter(&w->way, path, make, &name);

    if (dir >= 0)
        assert_string_equal(name, leaf);
    return dir;
}

static void put(struct way *w, const char *path, const char *leaf)
{
    int dir = enter(w, path, true, leaf);
    int fd = dir < 0 ? -1 : openat(dir, leaf, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

static void move(struct way *w, const char *from, const char *to)
{
    assert_int_equal(renameat(w->d->fd, from, w->d->fd, to), 0);
}

static void a_folder_stays_open_for_the_next_entry(void **state)
{
    struct way w;
    int dir;

    begin(&w, state);
    put(&w, "a/b/c/one", "one");
    dir = w.way.dir;
    put(&w, "a/b/c/two", "two");
    assert_int_equal(w.way.dir, dir);
    assert_int_not_equal(enter(&w, "a/b/c", true, "c"), -1);
    put(&w, "a/b/c/three", "three");
    assert_true(sandbox_dir_has(w.d, "root/a/b/c/three"));
    end(&w);
}

static void what_lies_at_the_top_needs_no_way(void **state)
{
    struct way w;

    begin(&w, state);
    assert_int_equal(enter(&w, "file", true, "file"), w.dest);
    put(&w, "a/x", "x");
    assert_int_equal(enter(&w, "other", true, "other"), w.dest);
    put(&w, "a/y", "y");
    assert_true(sandbox_dir_has(w.d, "root/a/y"));
    end(&w);
}

static void a_name_that_only_begins_alike_is_another_folder(void **state)
{
    struct way w;

    begin(&w, state);
    put(&w, "ab/x", "x");
    put(&w, "a/y", "y");
    put(&w, "ab/c/z", "z");
    assert_true(sandbox_dir_has(w.d, "root/a/y"));
    assert_true(sandbox_dir_has(w.d, "root/ab/c/z"));
    end(&w);
}

static void a_folder_that_was_moved_away_is_not_written_to_any_more(void **state)
{
    struct way w;

    begin(&w, state);
    put(&w, "a/b/one", "one");
    move(&w, "root/a/b", "outside/b");
    put(&w, "a/b/two", "two");
    assert_true(sandbox_dir_has(w.d, "root/a/b/two"));
    assert_false(sandbox_dir_has(w.d, "outside/b/two"));
    end(&w);
}

static void a_folder_that_was_replaced_is_found_anew(void **state)
{
    struct way w;

    begin(&w, state);
    put(&w, "a/b/one", "one");
    move(&w, "root/a", "root/old");
    sandbox_dir_folder(w.d, "root/a");
    sandbox_dir_folder(w.d, "root/a/b");
    put(&w, "a/b/two", "two");
    assert_true(sandbox_dir_has(w.d, "root/a/b/two"));
    assert_false(sandbox_dir_has(w.d, "root/old/b/two"));
    end(&w);
}

static void a_folder_that_was_removed_is_made_again_or_missing(void **state)
{
    struct way w;

    begin(&w, state);
    assert_true(enter(&w, "a/x", true, "x") >= 0);
    assert_int_equal(unlinkat(w.d->fd, "root/a", AT_REMOVEDIR), 0);
    assert_int_equal(enter(&w, "a/x", false, "x"), -ENOENT);
    put(&w, "a/x", "x");
    assert_true(sandbox_dir_has(w.d, "root/a/x"));
    end(&w);
}

static void a_link_that_took_its_place_is_refused(void **state)
{
    struct way w;

    begin(&w, state);
    put(&w, "a/b/one", "one");
    move(&w, "root/a", "root/old");
    sandbox_dir_link(w.d, "../outside", "root/a");
    sandbox_dir_folder(w.d, "outside/b");
    assert_int_equal(enter(&w, "a/b/two", true, "two"), -ELOOP);
    assert_int_equal(unlinkat(w.d->fd, "root/a", 0), 0);
    move(&w, "root/old", "root/a");
    assert_int_equal(unlinkat(w.d->fd, "root/a/b/one", 0), 0);
    assert_int_equal(unlinkat(w.d->fd, "root/a/b", AT_REMOVEDIR), 0);
    sandbox_dir_link(w.d, "../../outside", "root/a/b");
    assert_int_equal(enter(&w, "a/b/two", true, "two"), -ELOOP);
    end(&w);
}

static void a_file_in_the_way_is_no_folder(void **state)
{
    struct way w;

    begin(&w, state);
    put(&w, "a/file", "file");
    assert_int_equal(enter(&w, "a/file/x", true, "x"), -ENOTDIR);
    put(&w, "a/other", "other");
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_folder_stays_open_for_the_next_entry, sandbox_dir_setup,
                                        sandbox_dir_teardown),
        cmocka_unit_test_setup_teardown(what_lies_at_the_top_needs_no_way, sandbox_dir_setup,
                                        sandbox_dir_teardown),
        cmocka_unit_test_setup_teardown(a_name_that_only_begins_alike_is_another_folder,
                                        sandbox_dir_setup, sandbox_dir_teardown),
        cmocka_unit_test_setup_teardown(a_folder_that_was_moved_away_is_not_written_to_any_more,
                                        sandbox_dir_setup, sandbox_dir_teardown),
        cmocka_unit_test_setup_teardown(a_folder_that_was_replaced_is_found_anew, sandbox_dir_setup,
                                        sandbox_dir_teardown),
        cmocka_unit_test_setup_teardown(a_folder_that_was_removed_is_made_again_or_missing,
                                        sandbox_dir_setup, sandbox_dir_teardown),
        cmocka_unit_test_setup_teardown(a_link_that_took_its_place_is_refused, sandbox_dir_setup,
                                        sandbox_dir_teardown),
        cmocka_unit_test_setup_teardown(a_file_in_the_way_is_no_folder, sandbox_dir_setup,
                                        sandbox_dir_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
