#include "sandbox_dir.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/err.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, sandbox_dir_setup, sandbox_dir_teardown)

/* Every case is walked with openat2 and without it. */
static void both_ways(struct sandbox_dir *d, void (*check)(struct sandbox_dir *))
{
    check(d);
    d->kernel.mech[NK_MECH_OPENAT2].available = false;
    check(d);
}

static enum nk_code resolve(struct sandbox_dir *d, const char *path, unsigned flags,
                            struct nk_place *out)
{
    struct nk_err err = {0};

    if (nk_path_resolve(d->roots, path, strlen(path), flags, out, &err) < 0)
        return err.code;
    return NK_OK;
}

static void refused(struct sandbox_dir *d, const char *path, unsigned flags, enum nk_code code)
{
    struct nk_place place;
    enum nk_code got = resolve(d, path, flags, &place);

    if (got != code)
        fail_msg("%s: code %d, not %d", path, got, code);
}

/* `path` is found, its folder is `folder` (below base), and it is answered as `text`. */
static void found(struct sandbox_dir *d, const char *path, unsigned flags, const char *folder,
                  const char *name, const char *text)
{
    struct nk_place place;
    struct stat want, is;

    assert_int_equal(resolve(d, path, flags, &place), NK_OK);
    assert_string_equal(place.name, name);
    assert_string_equal(place.path, text);
    assert_int_equal(fstatat(d->fd, folder, &want, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(fstat(place.dir, &is), 0);
    assert_true(want.st_ino == is.st_ino && want.st_dev == is.st_dev);
    nk_place_fini(&place);
}

static void check_plain(struct sandbox_dir *d)
{
    char text[128];

    found(d, "a/b/f", 0, "root/a/b", "f", "a/b/f");
    found(d, "./a//b/./f", 0, "root/a/b", "f", "a/b/f");
    found(d, "a/b/", 0, "root/a", "b", "a/b");
    found(d, "", 0, "root", ".", ".");
    found(d, ".", 0, "root", ".", ".");
    found(d, "a/../a/b/../x", 0, "root/a", "x", "a/x");
    found(d, "a/b/..", 0, "root", "a", "a");
    found(d, "a/..", 0, "root", ".", ".");
    (void)snprintf(text, sizeof text, "%s/a/f", d->root);
    found(d, text, 0, "root/a", "f", text);
    found(d, d->root, 0, "root", ".", d->root);
}

static void a_path_is_walked_and_answered_in_its_own_form(void **state)
{
    struct sandbox_dir *d = *state;

    sandbox_dir_folder(d, "root/a");
    sandbox_dir_folder(d, "root/a/b");
    both_ways(d, check_plain);
}

static void check_leaving(struct sandbox_dir *d)
{
    char text[NK_PLACE_PATH_MAX + 8];

    refused(d, "..", 0, NK_BAD_PATH);
    refused(d, "../outside/secret", 0, NK_BAD_PATH);
    refused(d, "a/../../outside/secret", 0, NK_BAD_PATH);
    refused(d, "missing/../../x", 0, NK_BAD_PATH);
    refused(d, "missing/../x", 0, NK_NOT_FOUND);
    refused(d, "/etc/passwd", 0, NK_FORBIDDEN);
    refused(d, d->outside, 0, NK_FORBIDDEN);
    (void)snprintf(text, sizeof text, "%s/../outside/secret", d->root);
    refused(d, text, 0, NK_BAD_PATH);
    (void)snprintf(text, sizeof text, "%sx/f", d->root);
    refused(d, text, 0, NK_FORBIDDEN);
    memset(text, 'n', 256);
    text[256] = '\0';
    refused(d, text, 0, NK_BAD_PATH);
    memset(text, '/', NK_PLACE_PATH_MAX + 1);
    text[NK_PLACE_PATH_MAX + 1] = '\0';
    refused(d, text, 0, NK_BAD_PATH);
}

static void what_leaves_the_roots_is_refused(void **state)
{
    struct sandbox_dir *d = *state;
    struct nk_place place;
    struct nk_err err;

    sandbox_dir_folder(d, "root/a");
    both_ways(d, check_leaving);
    assert_int_equal(nk_path_resolve(d->roots, "a\0b", 3, 0, &place, &err), -1);
    assert_int_equal(err.code, NK_BAD_PATH);
}

static void a_name_may_be_as_long_as_the_system_allows_and_hold_any_byte(void **state)
{
    struct sandbox_dir *d = *state;
    struct nk_place place;
    char name[256];

    memset(name, 0xff, 255);
    name[255] = '\0';
    name[1] = '\n';
    name[2] = '%';
    assert_int_equal(resolve(d, name, 0, &place), NK_OK);
    assert_string_equal(place.path, name);
    nk_place_fini(&place);
}

static void check_links(struct sandbox_dir *d)
{
    found(d, "in/f", 0, "root/a/b", "f", "in/f");
    found(d, "abs/f", 0, "root/a/b", "f", "abs/f");
    found(d, "a/up/b/f", 0, "root/a/b", "f", "a/up/b/f");
    found(d, "in/../x", 0, "root/a", "x", "in/../x");
    found(d, "last", 0, "root", "last", "last");
    found(d, "last", NK_PATH_FOLLOW, "root/a/b", "f", "last");
    found(d, "back", NK_PATH_FOLLOW, "root", "a", "back");
    found(d, "round", NK_PATH_FOLLOW, "root/a", "b", "round");
    refused(d, "last", NK_PATH_NO_LINK, NK_BAD_PATH);
    refused(d, "out/secret", 0, NK_FORBIDDEN);
    refused(d, "out", NK_PATH_FOLLOW, NK_FORBIDDEN);
    refused(d, "relout/secret", 0, NK_FORBIDDEN);
    refused(d, "loop/x", 0, NK_BAD_PATH);
    refused(d, "a/b/f/x", 0, NK_BAD_PATH);
    refused(d, "dangling/x", 0, NK_NOT_FOUND);
    refused(d, "dangling/x", NK_PATH_PARENTS, NK_NOT_FOUND);
    found(d, "out", 0, "root", "out", "out");
}

static void links_are_resolved_inside_and_never_lead_out(void **state)
{
    struct sandbox_dir *d = *state;
    char text[128];

    sandbox_dir_folder(d, "root/a");
    sandbox_dir_folder(d, "root/a/b");
    sandbox_dir_file(d, "root/a/b/f", "inside");
    sandbox_dir_link(d, "a/b", "root/in");
    (void)snprintf(text, sizeof text, "%s/a/b", d->root);
    sandbox_dir_link(d, text, "root/abs");
    sandbox_dir_link(d, "../a", "root/a/up");
    sandbox_dir_link(d, "in/f", "root/last");
    sandbox_dir_link(d, "a/b/..", "root/back");
    sandbox_dir_link(d, "../root/a/b", "root/round");
    sandbox_dir_link(d, d->outside, "root/out");
    sandbox_dir_link(d, "../outside", "root/relout");
    sandbox_dir_link(d, "loop", "root/loop");
    sandbox_dir_link(d, "nowhere", "root/dangling");
    both_ways(d, check_links);
    assert_false(sandbox_dir_has(d, "root/nowhere"));
}

static void forty_links_are_followed_and_no_more(void **state)
{
    struct sandbox_dir *d = *state;
    char name[32], target[32];

    sandbox_dir_folder(d, "root/l0");
    for (int i = 1; i <= NK_PATH_LINKS_MAX + 1; i++) {
        (void)snprintf(name, sizeof name, "root/l%d", i);
        (void)snprintf(target, sizeof target, "l%d", i - 1);
        sandbox_dir_link(d, target, name);
    }
    found(d, "l40/f", 0, "root/l0", "f", "l40/f");
    refused(d, "l41/f", 0, NK_BAD_PATH);
}

static void a_readable_root_is_not_written_to(void **state)
{
    struct sandbox_dir *d = *state;
    const char *writable[] = {d->root, NULL};
    const char *readable[] = {d->outside, NULL};
    char text[128];

    nk_roots_free(d->roots);
    assert_int_equal(nk_roots_new(writable, readable, &d->kernel, &d->roots, NULL), 0);
    sandbox_dir_link(d, "../outside", "root/over");
    (void)snprintf(text, sizeof text, "%s/secret", d->outside);
    found(d, text, 0, "outside", "secret", text);
    found(d, "over/secret", 0, "outside", "secret", "over/secret");
    refused(d, text, NK_PATH_WRITE, NK_FORBIDDEN);
    refused(d, "over/secret", NK_PATH_WRITE, NK_FORBIDDEN);
    (void)snprintf(text, sizeof text, "%s/new/deep", d->outside);
    refused(d, text, NK_PATH_WRITE | NK_PATH_PARENTS, NK_FORBIDDEN);
    assert_false(sandbox_dir_has(d, "outside/new"));
}

static void missing_folders_are_made_with_their_own_mode(void **state)
{
    struct sandbox_dir *d = *state;
    struct nk_place place;
    struct stat st;
    mode_t old = umask(077);

    refused(d, "x/y/z", NK_PATH_WRITE, NK_NOT_FOUND);
    assert_int_equal(resolve(d, "x/y/z", NK_PATH_WRITE | NK_PATH_PARENTS, &place), NK_OK);
    umask(old);
    assert_int_equal(fstatat(d->fd, "root/x/y", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_false(sandbox_dir_has(d, "root/x/y/z"));
    nk_place_fini(&place);
}

static void only_regular_files_are_opened_and_nothing_blocks(void **state)
{
    struct sandbox_dir *d = *state;
    static const char *const names[] = {"fifo", "folder", "link"};
    struct nk_place place;
    struct nk_err err;
    struct stat st;

    assert_int_equal(mkfifoat(d->fd, "root/fifo", 0644), 0);
    sandbox_dir_folder(d, "root/folder");
    sandbox_dir_link(d, "fifo", "root/link");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(resolve(d, names[i], 0, &place), NK_OK);
        assert_int_equal(nk_place_open_file(&place, &st, &err), -1);
        assert_int_equal(err.code, NK_BAD_PATH);
        nk_place_fini(&place);
    }
}

/* A second thread swaps a folder and a link to outside over each other, as fast as it can. */
struct swapper {
    struct sandbox_dir *d;
    bool atomic; /* they can be exchanged at once: the name is never missing */
    atomic_bool stop;
    atomic_ulong swaps;
};

static bool exchange(struct sandbox_dir *d)
{
    return renameat2(d->fd, "root/d", d->fd, "root/evil", RENAME_EXCHANGE) == 0;
}

static void *swap(void *arg)
{
    struct swapper *s = arg;

    while (!atomic_load(&s->stop)) {
        if (s->atomic) {
            (void)exchange(s->d);
        } else {
            (void)renameat(s->d->fd, "root/d", s->d->fd, "root/kept");
            (void)renameat(s->d->fd, "root/evil", s->d->fd, "root/d");
            (void)renameat(s->d->fd, "root/d", s->d->fd, "root/evil");
            (void)renameat(s->d->fd, "root/kept", s->d->fd, "root/d");
        }
        atomic_fetch_add(&s->swaps, 1);
    }
    return NULL;
}

static bool is_secret(int fd)
{
    char text[8] = {0};

    return fd >= 0 && read(fd, text, 6) == 6 && memcmp(text, "secret", 6) == 0;
}

/* What must never be: what a string check and a later open do. */
static bool naive_escapes(struct sandbox_dir *d)
{
    char path[128], real[PATH_MAX];
    bool escaped;
    int fd;

    (void)snprintf(path, sizeof path, "%s/d/secret", d->root);
    if (!realpath(path, real) || strncmp(real, d->root, strlen(d->root)) != 0)
        return false;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    escaped = is_secret(fd);
    if (fd >= 0)
        (void)close(fd);
    return escaped;
}

static bool walk_escapes(struct sandbox_dir *d, const char *path)
{
    struct nk_place place;
    struct stat st;
    bool escaped = false;
    int fd;

    if (resolve(d, path, NK_PATH_FOLLOW, &place) != NK_OK)
        return false;
    fd = nk_place_open_file(&place, &st, NULL);
    escaped = is_secret(fd);
    if (fd >= 0)
        (void)close(fd);
    nk_place_fini(&place);
    return escaped;
}

/* Folders are made on the way only where the swapped name is never missing: one made in its place
 * would end the race. */
static void write_inside(struct sandbox_dir *d, unsigned long i, unsigned flags)
{
    struct nk_place place;
    char name[32];
    int fd;

    (void)snprintf(name, sizeof name, "d/new%lu/f", i % 7);
    if (resolve(d, name, NK_PATH_WRITE | flags, &place) != NK_OK)
        return;
    fd = openat(place.dir, place.name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd >= 0)
        (void)close(fd);
    (void)unlinkat(place.dir, place.name, 0);
    nk_place_fini(&place);
}

static unsigned long tries(void)
{
    const char *scale = getenv("NOOK_SCALE");
    double factor = scale ? strtod(scale, NULL) : 0.02;

    return (unsigned long)(1e6 * factor);
}

static void no_swap_leads_a_walk_outside_while_a_naive_check_is_led(void **state)
{
    struct sandbox_dir *d = *state;
    struct swapper s = {.d = d, .stop = false};
    unsigned long escapes = 0, naive = 0, count = tries();
    struct stat st;
    pthread_t thread;

    sandbox_dir_folder(d, "root/d");
    sandbox_dir_file(d, "root/d/secret", "inside");
    sandbox_dir_link(d, d->outside, "root/evil");
    sandbox_dir_link(d, "d/secret", "root/by-link");
    s.atomic = exchange(d) && exchange(d);
    assert_int_equal(pthread_create(&thread, NULL, swap, &s), 0);
    for (unsigned long i = 0; i < count; i++) {
        d->kernel.mech[NK_MECH_OPENAT2].available = i & 1;
        escapes += walk_escapes(d, i & 2 ? "d/secret" : "by-link");
        write_inside(d, i, s.atomic ? NK_PATH_PARENTS : 0);
    }
    /* The control goes on until it has been led out once: then the race was on. */
    for (unsigned long i = 0; naive == 0 && i < 2000000; i++)
        naive += naive_escapes(d);
    atomic_store(&s.stop, true);
    (void)pthread_join(thread, NULL);
    assert_int_equal(escapes, 0);
    assert_true(naive > 0);
    assert_true(atomic_load(&s.swaps) > 0);
    assert_int_equal(fstatat(d->fd, "outside", &st, 0), 0);
    assert_int_equal(st.st_nlink, 2); /* no folder was made there */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_path_is_walked_and_answered_in_its_own_form),
        TEST(what_leaves_the_roots_is_refused),
        TEST(a_name_may_be_as_long_as_the_system_allows_and_hold_any_byte),
        TEST(links_are_resolved_inside_and_never_lead_out),
        TEST(forty_links_are_followed_and_no_more),
        TEST(a_readable_root_is_not_written_to),
        TEST(missing_folders_are_made_with_their_own_mode),
        TEST(only_regular_files_are_opened_and_nothing_blocks),
        TEST(no_swap_leads_a_walk_outside_while_a_naive_check_is_led),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
