#include "sandbox_dir.h"

#include <errno.h>

#include "base/clock.h"
#include "files/names.h"
#include "files/walk.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, sandbox_dir_setup, sandbox_dir_teardown)

struct seen {
    char text[4096]; /* "a a/b >a": a folder that is left has an arrow */
    size_t count;
};

static void note(struct seen *seen, const struct nk_walk_entry *e)
{
    size_t len = strlen(seen->text);

    seen->count++;
    (void)snprintf(seen->text + len, sizeof seen->text - len, "%s%s%s", len ? " " : "",
                   e->leaving ? ">" : "", e->path);
}

static void walk(struct sandbox_dir *d, const struct nk_walk_options *options, uint64_t until_ns,
                 struct seen *seen)
{
    int fd = openat(d->fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct nk_walk_entry e;
    struct nk_walk *w = NULL;
    int rc;

    memset(seen, 0, sizeof *seen);
    assert_int_equal(nk_walk_new(fd, options, &w), 0);
    while ((rc = nk_walk_next(w, until_ns, &e)) != 0) {
        if (rc == -EAGAIN)
            continue;
        assert_int_equal(rc, 1);
        note(seen, &e);
    }
    nk_walk_free(w);
}

static void is_seen(struct sandbox_dir *d, const struct nk_walk_options *options, const char *want)
{
    struct seen seen;

    walk(d, options, UINT64_MAX, &seen);
    assert_string_equal(seen.text, want);
}

static void make_some(struct sandbox_dir *d)
{
    sandbox_dir_folder(d, "root/a");
    sandbox_dir_folder(d, "root/a/c");
    sandbox_dir_file(d, "root/a/c/x", "");
    sandbox_dir_file(d, "root/a/b", "");
    sandbox_dir_file(d, "root/a-b", "");
    sandbox_dir_file(d, "root/a0", "");
    sandbox_dir_folder(d, "root/z");
    sandbox_dir_link(d, "a", "root/link");
}

static void the_order_is_that_of_whole_paths(void **state)
{
    struct sandbox_dir *d = *state;

    make_some(d);
    is_seen(d, &(struct nk_walk_options){0}, "a a-b a/b a/c a/c/x >a/c >a a0 link z >z");
    is_seen(d, &(struct nk_walk_options){.depth = 1}, "a a-b a0 link z");
    is_seen(d, &(struct nk_walk_options){.depth = 2}, "a a-b a/b a/c >a a0 link z >z");
    is_seen(d, &(struct nk_walk_options){.path_max = 3}, "a a-b a/b a/c >a a0 z >z");
}

static void a_nested_walk_stays_with_a_folder_until_it_is_through(void **state)
{
    struct sandbox_dir *d = *state;

    make_some(d);
    is_seen(d, &(struct nk_walk_options){.nested = true},
            "a a/b a/c a/c/x >a/c >a a-b a0 link z >z");
    is_seen(d, &(struct nk_walk_options){.nested = true, .names_max = 1},
            "a a/b a/c a/c/x >a/c >a a-b a0 link z >z");
}

static void a_walk_begins_behind_any_path(void **state)
{
    struct sandbox_dir *d = *state;

    make_some(d);
    is_seen(d, &(struct nk_walk_options){.after = "a-b"}, "a/b a/c a/c/x >a/c >a a0 link z >z");
    is_seen(d, &(struct nk_walk_options){.after = "a/b"}, "a/c a/c/x >a/c >a a0 link z >z");
    is_seen(d, &(struct nk_walk_options){.after = "a/c/x"}, ">a/c >a a0 link z >z");
    is_seen(d, &(struct nk_walk_options){.after = "a/gone/y"}, ">a a0 link z >z");
    is_seen(d, &(struct nk_walk_options){.after = "gone/y"}, "link z >z");
    is_seen(d, &(struct nk_walk_options){.after = "~"}, "");
}

static void an_interrupted_walk_tells_the_same(void **state)
{
    struct sandbox_dir *d = *state;
    struct seen whole, cut;
    char name[32];

    make_some(d);
    for (int i = 0; i < 900; i++) {
        (void)snprintf(name, sizeof name, "root/z/%d", i);
        sandbox_dir_file(d, name, "");
    }
    walk(d, &(struct nk_walk_options){0}, UINT64_MAX, &whole);
    walk(d, &(struct nk_walk_options){0}, nk_clock_mono_ns(), &cut);
    assert_int_equal(whole.count, 911);
    assert_int_equal(cut.count, whole.count);
}

static void more_names_than_are_kept_come_in_order_too(void **state)
{
    struct sandbox_dir *d = *state;
    int fd = -1;
    struct nk_walk *w = NULL;
    struct nk_walk_entry e;
    char name[32], last[32] = "";
    size_t count = 0;

    for (int i = 0; i < 3 * NK_NAMES_MAX; i++) {
        (void)snprintf(name, sizeof name, "root/%x", (unsigned)(i * 2654435761u));
        sandbox_dir_file(d, name, "");
    }
    fd = openat(d->fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(nk_walk_new(fd, &(struct nk_walk_options){0}, &w), 0);
    while (nk_walk_next(w, UINT64_MAX, &e) > 0) {
        assert_true(strcmp(last, e.name) < 0);
        (void)snprintf(last, sizeof last, "%s", e.name);
        count++;
    }
    assert_int_equal(count, 3 * NK_NAMES_MAX);
    nk_walk_free(w);
}

static void a_folder_that_is_moved_away_is_left_and_the_walk_goes_on(void **state)
{
    struct sandbox_dir *d = *state;
    int fd = openat(d->fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct nk_walk_entry e;
    struct nk_walk *w = NULL;
    struct seen seen = {0};

    make_some(d);
    assert_int_equal(nk_walk_new(fd, &(struct nk_walk_options){0}, &w), 0);
    while (nk_walk_next(w, UINT64_MAX, &e) > 0) {
        note(&seen, &e);
        /* We are in a/c: its `..` is now outside. */
        if (strcmp(e.path, "a/c/x") == 0)
            assert_int_equal(renameat(d->fd, "root/a/c", d->fd, "outside/c"), 0);
    }
    assert_string_equal(seen.text, "a a-b a/b a/c a/c/x >a/c >a a0 link z >z");
    nk_walk_free(w);
}

static void every_name_sorts_as_a_path_does(void **state)
{
    struct nk_name a = {.text = (char[]){"a"}}, ai = {.text = (char[]){"a"}, .inner = true};
    struct nk_name ab = {.text = (char[]){"a-b"}}, a0 = {.text = (char[]){"a0"}};
    struct nk_name high = {.text = (char[]){"a\xff"}};

    (void)state;
    assert_true(nk_names_compare(&a, &ai) < 0);
    assert_true(nk_names_compare(&a, &ab) < 0);
    assert_true(nk_names_compare(&ab, &ai) < 0);
    assert_true(nk_names_compare(&ai, &a0) < 0);
    assert_true(nk_names_compare(&a0, &high) < 0);
    assert_int_equal(nk_names_compare(&ai, &ai), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_order_is_that_of_whole_paths),
        TEST(a_nested_walk_stays_with_a_folder_until_it_is_through),
        TEST(a_walk_begins_behind_any_path),
        TEST(an_interrupted_walk_tells_the_same),
        TEST(more_names_than_are_kept_come_in_order_too),
        TEST(a_folder_that_is_moved_away_is_left_and_the_walk_goes_on),
        cmocka_unit_test(every_name_sorts_as_a_path_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
