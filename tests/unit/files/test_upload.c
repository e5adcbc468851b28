#include "sandbox_dir.h"

#include <dirent.h>
#include <limits.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/job.h"
#include "files/temp.h"
#include "files/upload.h"

/* An upload on a loop of its own, and what it said. */
struct fixture {
    struct sandbox_dir *d;
    uv_loop_t loop;
    struct nk_jobs *jobs;
    struct nk_upload *upload;
    unsigned rooms;
    unsigned reads;
    uint64_t was_read;
    bool over;
    unsigned held; /* files without a name, when it was told to be over */
    bool created;
    enum nk_code code; /* NK_OK: it went well */
    char path[128];
};

static void on_room(void *ctx)
{
    struct fixture *f = ctx;

    f->rooms++;
}

/* Descriptors of this process whose file has no name any more. */
static unsigned held_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(dir);
    for (struct dirent *at; (at = readdir(dir)) != NULL;) {
        char target[PATH_MAX] = {0};

        if (readlinkat(dirfd(dir), at->d_name, target, sizeof target - 1) > 0)
            n += strstr(target, "/big (deleted)") != NULL;
    }
    (void)closedir(dir);
    return n;
}

static void on_over(void *ctx, const struct nk_entry *entry, bool created, const struct nk_err *err)
{
    struct fixture *f = ctx;

    assert_false(f->over);
    f->over = true;
    f->held = held_files();
    f->created = created;
    f->code = err ? err->code : NK_OK;
    if (entry)
        (void)snprintf(f->path, sizeof f->path, "%s", entry->path);
}

static void on_read(void *ctx, uint64_t bytes)
{
    struct fixture *f = ctx;

    assert_false(f->over);
    f->reads++;
    f->was_read += bytes;
}

static const struct nk_upload_events events = {
    .on_room = on_room, .on_read = on_read, .on_over = on_over};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    assert_int_equal(sandbox_dir_setup((void **)&f->d), 0);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(nk_jobs_new(&f->loop, &f->jobs), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    nk_upload_drop(&f->upload);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(nk_jobs_active(f->jobs), 0);
    nk_jobs_free(f->jobs);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    (void)sandbox_dir_teardown((void **)&f->d);
    free(f);
    return 0;
}

static void settle(struct fixture *f)
{
    while (nk_jobs_active(f->jobs) > 0)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
}

static void begin(struct fixture *f, const char *path, unsigned mode, int64_t size)
{
    struct nk_upload_config cfg = {.jobs = f->jobs,
                                   .roots = f->d->roots,
                                   .path = path,
                                   .path_len = strlen(path),
                                   .mode = mode,
                                   .size = size,
                                   .events = &events,
                                   .ctx = f};

    f->over = false;
    f->rooms = f->reads = 0;
    f->was_read = 0;
    assert_int_equal(nk_upload_new(&cfg, &f->upload, NULL), 0);
}

static void finish(struct fixture *f, const char *text)
{
    (void)nk_upload_write(f->upload, text, strlen(text));
    nk_upload_end(f->upload);
    settle(f);
    assert_true(f->over);
    nk_upload_drop(&f->upload);
    settle(f);
}

static unsigned entries_of(struct fixture *f, const char *folder)
{
    int fd = openat(f->d->fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fdopendir(fd);
    unsigned n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n - 2;
}

static void has_text(struct fixture *f, const char *name, const char *text)
{
    char got[64] = {0};
    int fd = openat(f->d->fd, name, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_true(read(fd, got, sizeof got - 1) >= 0);
    assert_string_equal(got, text);
    (void)close(fd);
}

static void a_file_has_its_name_only_when_it_is_complete(void **state)
{
    struct fixture *f = *state;

    begin(f, "a/b/f", NK_UPLOAD_KEEP_MODE, -1);
    settle(f);
    assert_int_equal(f->rooms, 1); /* it is open: bytes may come */
    assert_false(sandbox_dir_has(f->d, "root/a/b/f"));
    assert_true(entries_of(f, "root/a/b") <= 1); /* none where files can be without a name */
    finish(f, "hello");
    assert_int_equal(f->code, NK_OK);
    assert_true(f->created);
    assert_string_equal(f->path, "a/b/f");
    has_text(f, "root/a/b/f", "hello");
    assert_int_equal(entries_of(f, "root/a/b"), 1);
    begin(f, "a/b/f", NK_UPLOAD_KEEP_MODE, -1);
    finish(f, "again");
    assert_false(f->created);
    has_text(f, "root/a/b/f", "again");
}

static void one_that_is_given_up_leaves_nothing_behind(void **state)
{
    struct fixture *f = *state;

    sandbox_dir_folder(f->d, "root/old");
    begin(f, "old/new/deep/f", NK_UPLOAD_KEEP_MODE, -1);
    settle(f);
    (void)nk_upload_write(f->upload, "half", 4);
    nk_upload_drop(&f->upload);
    settle(f);
    assert_false(f->over);
    assert_int_equal(entries_of(f, "root/old"), 0);
    begin(f, "old/f", NK_UPLOAD_KEEP_MODE, -1); /* dropped before its first job has run */
    nk_upload_drop(&f->upload);
    settle(f);
    assert_int_equal(entries_of(f, "root/old"), 0);
}

static void writing_goes_on_only_as_fast_as_the_disk(void **state)
{
    struct fixture *f = *state;
    static uint8_t piece[64 * 1024];
    size_t taken = 0;
    struct stat st;

    begin(f, "f", NK_UPLOAD_KEEP_MODE, -1);
    settle(f);
    /* Two buffers, and the piece that told that they are full. */
    for (bool more = true; more; taken += sizeof piece)
        more = nk_upload_write(f->upload, piece, sizeof piece);
    assert_true(taken <= 2 * (NK_UPLOAD_BUFFER + sizeof piece));
    f->rooms = 0;
    settle(f);
    assert_int_equal(f->rooms, 1);
    finish(f, "");
    assert_int_equal(fstatat(f->d->fd, "root/f", &st, 0), 0);
    assert_int_equal((size_t)st.st_size, taken);
}

/* Both ends of a connection, ours not blocking. */
static void connect_pair(int ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
}

static void read_once(struct fixture *f, int socket, uint64_t max)
{
    assert_true(nk_upload_read(f->upload, socket, max));
    assert_false(nk_upload_read(f->upload, socket, max)); /* one at a time */
    settle(f);
}

static void a_job_reads_a_body_in_its_order(void **state)
{
    struct fixture *f = *state;
    int ends[2];

    connect_pair(ends);
    begin(f, "f", NK_UPLOAD_KEEP_MODE, 20);
    settle(f);
    (void)nk_upload_write(f->upload, "first ", 6);
    assert_int_equal(write(ends[1], "second third", 12), 12);
    read_once(f, ends[0], 7);
    assert_int_equal(f->was_read, 7);
    read_once(f, ends[0], 100); /* fewer came than might */
    assert_int_equal(f->was_read, 12);
    (void)close(ends[1]);
    read_once(f, ends[0], 100);
    assert_int_equal(f->was_read, 12);
    assert_int_equal(f->reads, 3);
    (void)close(ends[0]);
    finish(f, " end");
    has_text(f, "root/f", "first second third end");
}

static void a_job_that_reads_outlives_the_connection(void **state)
{
    struct fixture *f = *state;
    int ends[2];

    connect_pair(ends);
    begin(f, "f", NK_UPLOAD_KEEP_MODE, 20);
    settle(f);
    assert_int_equal(write(ends[1], "text", 4), 4);
    assert_true(nk_upload_read(f->upload, ends[0], 20));
    (void)close(ends[0]);
    nk_upload_drop(&f->upload);
    settle(f);
    (void)close(ends[1]);
    assert_int_equal(f->reads, 0); /* it was let go: nothing is told */
    assert_int_equal(entries_of(f, "root"), 0);
}

static mode_t mode_of(struct fixture *f, const char *name)
{
    struct stat st;

    assert_int_equal(fstatat(f->d->fd, name, &st, 0), 0);
    return st.st_mode & 07777;
}

static void the_mode_is_the_old_one_the_asked_one_or_0644(void **state)
{
    struct fixture *f = *state;
    mode_t old = umask(077);

    begin(f, "f", NK_UPLOAD_KEEP_MODE, -1);
    finish(f, "");
    assert_int_equal(mode_of(f, "root/f"), 0644);
    begin(f, "f", 0751, -1);
    finish(f, "");
    assert_int_equal(mode_of(f, "root/f"), 0751);
    begin(f, "f", NK_UPLOAD_KEEP_MODE, -1);
    finish(f, "");
    assert_int_equal(mode_of(f, "root/f"), 0751);
    umask(old);
}

static void a_large_file_that_is_replaced_goes_after_the_answer(void **state)
{
    struct fixture *f = *state;
    int big = openat(f->d->fd, "root/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    assert_true(big >= 0);
    assert_int_equal(ftruncate(big, (off_t)2 << 20), 0);
    (void)close(big);
    begin(f, "big", 0600, -1);
    nk_upload_end(f->upload);
    while (!f->over)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    assert_int_equal(f->code, NK_OK);
    assert_int_equal(f->held, 1);
    settle(f);
    assert_int_equal(held_files(), 0);
    nk_upload_drop(&f->upload);
    begin(f, "big", 0600, -1);
    finish(f, "small ones at once");
    assert_int_equal(f->held, 0);
    has_text(f, "root/big", "small ones at once");
}

static void what_is_no_file_is_not_replaced(void **state)
{
    static const char *const paths[] = {"folder", "link", "fifo", "f/", "folder/../..", "x/"};
    struct fixture *f = *state;

    sandbox_dir_folder(f->d, "root/folder");
    sandbox_dir_link(f->d, "target", "root/link");
    assert_int_equal(mkfifoat(f->d->fd, "root/fifo", 0644), 0);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        begin(f, paths[i], NK_UPLOAD_KEEP_MODE, -1);
        finish(f, "x");
        assert_int_equal(f->code, NK_BAD_PATH);
    }
    assert_int_equal(entries_of(f, "root"), 3);
}

static void what_cannot_fit_is_refused_before_its_bytes(void **state)
{
    struct fixture *f = *state;

    begin(f, "new/f", NK_UPLOAD_KEEP_MODE, INT64_MAX);
    settle(f);
    assert_true(f->over);
    assert_int_equal(f->code, NK_NO_SPACE);
    assert_int_equal(entries_of(f, "root"), 0);
}

static void a_name_of_ours_is_told_from_others(void **state)
{
    char name[NK_TEMP_MAX];

    (void)state;
    nk_temp_name(name);
    assert_true(nk_temp_is(name));
    assert_false(nk_temp_is(".nook-.part"));
    assert_false(nk_temp_is(".nook-notes.part"));
    assert_false(nk_temp_is("file"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_has_its_name_only_when_it_is_complete),
        TEST(one_that_is_given_up_leaves_nothing_behind),
        TEST(writing_goes_on_only_as_fast_as_the_disk),
        TEST(a_job_reads_a_body_in_its_order),
        TEST(a_job_that_reads_outlives_the_connection),
        TEST(the_mode_is_the_old_one_the_asked_one_or_0644),
        TEST(a_large_file_that_is_replaced_goes_after_the_answer),
        TEST(what_is_no_file_is_not_replaced),
        TEST(what_cannot_fit_is_refused_before_its_bytes),
        cmocka_unit_test(a_name_of_ours_is_told_from_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
