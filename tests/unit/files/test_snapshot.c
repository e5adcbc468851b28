#include "files/snapshot.h"

#include "sandbox_dir.h"

#include "base/clock.h"
#include "base/scope.h"

struct trees {
    struct sandbox_dir *dir;
    struct nk_roots *roots;
    struct nk_snapshot *snap;
    char a[80], b[80];
};

static void put(const char *folder, const char *name, const char *text)
{
    char path[512];
    nk_auto_fd int fd = -1;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void make(const char *folder, const char *name)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static int setup(void **state)
{
    struct trees *t = calloc(1, sizeof *t);
    const char *writable[] = {t->a, t->b, NULL};

    assert_non_null(t);
    assert_int_equal(sandbox_dir_setup((void **)&t->dir), 0);
    make(t->dir->base, "a");
    make(t->dir->base, "b");
    (void)snprintf(t->a, sizeof t->a, "%s/a", t->dir->base);
    (void)snprintf(t->b, sizeof t->b, "%s/b", t->dir->base);
    *state = t;
    return nk_roots_new(writable, NULL, &t->dir->kernel, &t->roots, NULL);
}

static int teardown(void **state)
{
    struct trees *t = *state;

    nk_snapshot_free(t->snap);
    nk_roots_free(t->roots);
    (void)sandbox_dir_teardown((void **)&t->dir);
    free(t);
    return 0;
}

static void look_before(struct trees *t)
{
    assert_int_equal(nk_snapshot_new(t->roots, NULL, geteuid(), &t->snap), 0);
    while (nk_snapshot_before(t->snap, nk_clock_mono_ns() + 1000000) > 0)
        ;
}

/* What changed, as "path:size " of each, from the sandbox's folder on. */
static const char *changes(struct trees *t)
{
    static char text[512];
    const struct nk_change *list;
    size_t count, at = 0;

    while (nk_snapshot_after(t->snap, nk_clock_mono_ns() + 1000000) > 0)
        ;
    (void)nk_snapshot_settle(t->snap);
    count = nk_snapshot_changes(t->snap, &list);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const char *path = list[i].path + strlen(t->dir->base) + 1;

        assert_string_equal(list[i].rest, path + 2);
        assert_true(at < sizeof text);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s:%llu ", path,
                               (unsigned long long)list[i].size);
    }
    return text;
}

static void created_and_changed_files_are_told_in_order(void **state)
{
    struct trees *t = *state;

    put(t->a, "same", "x");
    put(t->b, "grows", "x");
    make(t->a, "sub");
    look_before(t);
    put(t->b, "grows", "xyz");
    put(t->a, "sub/new", "");
    put(t->a, "Z", "1234");
    assert_string_equal(changes(t), "a/Z:4 a/sub/new:0 b/grows:3 ");
    assert_int_equal(nk_snapshot_files(t->snap), 4);
}

static void nothing_changed_is_an_empty_list(void **state)
{
    struct trees *t = *state;

    put(t->a, "one", "x");
    look_before(t);
    assert_string_equal(changes(t), "");
}

static void a_rewrite_with_the_same_size_and_mtime_shows(void **state)
{
    struct trees *t = *state;
    char path[512];
    struct stat st;

    put(t->a, "file", "abc");
    (void)snprintf(path, sizeof path, "%s/file", t->a);
    assert_int_equal(stat(path, &st), 0);
    look_before(t);
    put(t->a, "file", "xyz");
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){st.st_atim, st.st_mtim}, 0), 0);
    assert_string_equal(changes(t), "a/file:3 ");
}

static void a_rewrite_in_the_same_moment_as_the_look_shows_every_time(void **state)
{
    struct trees *t = *state;

    for (int i = 0; i < 20; i++) {
        put(t->a, "file", "abc");
        look_before(t);
        put(t->a, "file", "xyz");
        assert_string_equal(changes(t), "a/file:3 ");
        nk_snapshot_free(t->snap);
        t->snap = NULL;
    }
}

static void a_file_put_in_the_place_of_another_shows(void **state)
{
    struct trees *t = *state;
    char from[512], to[512];

    put(t->a, "old", "abc");
    put(t->b, "twin", "abc");
    look_before(t);
    (void)snprintf(from, sizeof from, "%s/twin", t->b);
    (void)snprintf(to, sizeof to, "%s/old", t->a);
    assert_int_equal(rename(from, to), 0);
    assert_string_equal(changes(t), "a/old:3 ");
}

static void caches_links_folders_and_own_files_are_left_out(void **state)
{
    struct trees *t = *state;
    char link[512];

    make(t->a, "node_modules");
    look_before(t);
    make(t->a, "__pycache__");
    put(t->a, "__pycache__/x.pyc", "x");
    make(t->a, "node_modules/.cache");
    put(t->a, "node_modules/.cache/x", "x");
    make(t->a, "go-build123");
    put(t->a, "go-build123/x", "x");
    make(t->a, ".nook-something");
    put(t->a, ".nook-something/x", "x");
    put(t->a, ".nook-upload.part", "x");
    (void)snprintf(link, sizeof link, "%s/link", t->a);
    assert_int_equal(symlink("/etc/passwd", link), 0);
    assert_string_equal(changes(t), "");
}

static void folders_that_only_look_like_caches_are_looked_at(void **state)
{
    struct trees *t = *state;

    look_before(t);
    make(t->a, "go-builder");
    put(t->a, "go-builder/x", "x");
    make(t->a, "tsx-parts");
    put(t->a, "tsx-parts/x", "x");
    make(t->a, "telemetry");
    put(t->a, "telemetry/x", "x");
    assert_string_equal(changes(t), "a/go-builder/x:1 a/telemetry/x:1 a/tsx-parts/x:1 ");
}

static void files_of_others_are_left_out(void **state)
{
    struct trees *t = *state;

    assert_int_equal(nk_snapshot_new(t->roots, NULL, geteuid() + 1, &t->snap), 0);
    while (nk_snapshot_before(t->snap, UINT64_MAX) > 0)
        ;
    put(t->a, "mine", "x");
    assert_string_equal(changes(t), "");
}

/* Deeper than descriptors are held, and back up to names that wait on every level. */
static void a_deep_tree_is_seen_whole(void **state)
{
    struct trees *t = *state;
    char path[512] = "";
    const struct nk_change *list;

    look_before(t);
    for (int i = 0; i < 60; i++) {
        size_t len = strlen(path);

        (void)snprintf(path + len, sizeof path - len, "%sd", i ? "/" : "");
        make(t->a, path);
        len = strlen(path);
        (void)snprintf(path + len, sizeof path - len, "/e");
        make(t->a, path);
        (void)snprintf(path + len, sizeof path - len, "/e/f");
        put(t->a, path, "x");
        path[len] = '\0';
    }
    while (nk_snapshot_after(t->snap, UINT64_MAX) > 0)
        ;
    assert_int_equal(nk_snapshot_changes(t->snap, &list), 60);
}

static void many_files_in_short_slices_are_each_seen_once(void **state)
{
    struct trees *t = *state;
    char name[32];
    unsigned slices = 0;

    for (int i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof name, "file-%d", i);
        put(t->a, name, "x");
    }
    assert_int_equal(nk_snapshot_new(t->roots, NULL, geteuid(), &t->snap), 0);
    while (nk_snapshot_before(t->snap, 0) > 0)
        slices++;
    assert_true(slices > 10);
    assert_int_equal(nk_snapshot_files(t->snap), 3000);
    put(t->a, "file-1234", "y");
    assert_string_equal(changes(t), "a/file-1234:1 ");
}

static void a_root_within_another_is_looked_at_once(void **state)
{
    struct trees *t = *state;
    const char *writable[] = {t->a, t->dir->base, t->a, NULL};
    const struct nk_change *list;

    nk_roots_free(t->roots);
    assert_int_equal(nk_roots_new(writable, NULL, &t->dir->kernel, &t->roots, NULL), 0);
    assert_int_equal(nk_snapshot_new(t->roots, t->b, geteuid(), &t->snap), 0);
    while (nk_snapshot_before(t->snap, UINT64_MAX) > 0)
        ;
    put(t->a, "one", "x");
    put(t->b, "two", "x");
    while (nk_snapshot_after(t->snap, UINT64_MAX) > 0)
        ;
    assert_int_equal(nk_snapshot_changes(t->snap, &list), 2);
    assert_string_equal(list[0].rest, "a/one");
}

static void one_more_folder_is_looked_at(void **state)
{
    struct trees *t = *state;
    char more[128];
    const struct nk_change *list;
    nk_auto_fd int fd = -1;

    make(t->dir->base, "out");
    (void)snprintf(more, sizeof more, "%s/out", t->dir->base);
    assert_int_equal(nk_snapshot_new(t->roots, more, geteuid(), &t->snap), 0);
    while (nk_snapshot_before(t->snap, UINT64_MAX) > 0)
        ;
    put(more, "plot", "x");
    while (nk_snapshot_after(t->snap, UINT64_MAX) > 0)
        ;
    assert_int_equal(nk_snapshot_changes(t->snap, &list), 1);
    fd = nk_snapshot_enter(t->snap, list[0].root);
    assert_int_equal(faccessat(fd, list[0].rest, F_OK, 0), 0);
}

/* More changes than are told elsewhere leave room for those of the further folder. */
static void a_flood_elsewhere_hides_nothing_in_the_further_folder(void **state)
{
    struct trees *t = *state;
    const struct nk_change *list;
    char name[32];
    size_t count;

    assert_int_equal(nk_snapshot_new(t->roots, t->b, geteuid(), &t->snap), 0);
    while (nk_snapshot_before(t->snap, nk_clock_mono_ns() + 1000000) > 0)
        ;
    for (int i = 0; i < NK_SNAPSHOT_CHANGES_MAX + 10; i++) {
        (void)snprintf(name, sizeof name, "%d", i);
        put(t->a, name, "");
    }
    put(t->b, "image", "x");
    while (nk_snapshot_after(t->snap, nk_clock_mono_ns() + 1000000) > 0)
        ;
    count = nk_snapshot_changes(t->snap, &list);
    assert_int_equal(count, NK_SNAPSHOT_CHANGES_MAX + 1);
    assert_string_equal(list[count - 1].rest, "image");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(created_and_changed_files_are_told_in_order),
        TEST(nothing_changed_is_an_empty_list),
        TEST(a_rewrite_with_the_same_size_and_mtime_shows),
        TEST(a_rewrite_in_the_same_moment_as_the_look_shows_every_time),
        TEST(a_file_put_in_the_place_of_another_shows),
        TEST(caches_links_folders_and_own_files_are_left_out),
        TEST(folders_that_only_look_like_caches_are_looked_at),
        TEST(files_of_others_are_left_out),
        TEST(a_deep_tree_is_seen_whole),
        TEST(many_files_in_short_slices_are_each_seen_once),
        TEST(a_root_within_another_is_looked_at_once),
        TEST(one_more_folder_is_looked_at),
        TEST(a_flood_elsewhere_hides_nothing_in_the_further_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
