#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/job.h"
#include "base/json.h"
#include "base/log.h"

struct pair {
    int in, out; /* the test reads in; the log writes to out */
};

static struct pair open_pipe(void)
{
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    (void)fcntl(fds[1], F_SETPIPE_SZ, 4096);
    return (struct pair){fds[0], fds[1]};
}

static struct pair open_socket(void)
{
    int fds[2];
    int size = 4096;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
    return (struct pair){fds[0], fds[1]};
}

static void close_pair(struct pair p)
{
    nk_log_fini();
    close(p.in);
    close(p.out);
}

/* All that can be read now, appended to `text`; returns how many bytes it holds then. */
static size_t read_now(int fd, char *text, size_t have, size_t cap)
{
    ssize_t n;

    while (have + 1 < cap && (n = read(fd, text + have, cap - 1 - have)) > 0)
        have += (size_t)n;
    text[have] = '\0';
    return have;
}

static size_t drain(int fd, char *text, size_t have, size_t cap)
{
    have = read_now(fd, text, have, cap);
    while (nk_log_pending()) {
        nk_log_flush();
        have = read_now(fd, text, have, cap);
    }
    return have;
}

static void assert_blocking_is_untouched(int fd)
{
    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
}

static void only_what_matters_is_written(void **state)
{
    struct pair p = open_pipe();
    char text[4096];

    (void)state;
    nk_clock_fake(0, 0);
    nk_log_msg(NK_LOG_ERROR, "e", "before the log is there");
    nk_log_init(p.out, NK_LOG_INFO, false);
    assert_false(nk_log_on(NK_LOG_DEBUG));
    assert_true(nk_log_on(NK_LOG_INFO));
    assert_false(nk_log_on(NK_LOG_OFF));
    nk_log_msg(NK_LOG_DEBUG, "e", "no");
    nk_log_msg(NK_LOG_INFO, "start", "version %d", 3);
    nk_log_write(NK_LOG_WARN, "odd", NULL, (struct nk_log_field[]){{.key = "n", .num = 4}, {0}});
    (void)read_now(p.in, text, 0, sizeof text);
    assert_string_equal(text, "1970-01-01T00:00:00.000Z info start: version 3\n"
                              "1970-01-01T00:00:00.000Z warn odd n=4\n");
    assert_false(nk_log_pending());
    nk_clock_real();
    close_pair(p);
}

/* Fills until lines are dropped, then reads all: every line whole, and the count adds up. */
static void nothing_blocks_and_the_dropped_are_counted(struct pair p)
{
    size_t cap = 1024 * 1024, have = 0;
    char *text = malloc(cap);
    uint64_t written = 0, got = 0, told = 0;

    assert_non_null(text);
    nk_log_init(p.out, NK_LOG_INFO, true);
    while (nk_log_dropped() < 10) {
        nk_log_msg(NK_LOG_INFO, "fill", "line %llu", (unsigned long long)written++);
        assert_true(written < 100000);
    }
    assert_true(nk_log_pending());
    assert_true(nk_log_fd() >= 0);
    assert_blocking_is_untouched(p.out);
    have = drain(p.in, text, have, cap);
    nk_log_msg(NK_LOG_INFO, "after", "goes out");
    nk_log_msg(NK_LOG_INFO, "after", "is told once");
    have = drain(p.in, text, have, cap);
    for (char *line = text, *end; (end = memchr(line, '\n', have - (size_t)(line - text)));
         line = end + 1, got++) {
        struct nk_json *root;
        const struct nk_json *dropped;

        assert_int_equal(nk_json_parse(line, (size_t)(end - line), &root, NULL), 0);
        dropped = nk_json_get(root, "dropped");
        told += dropped ? (uint64_t)nk_json_num(dropped) : 0;
        nk_json_free(root);
    }
    assert_true(nk_log_dropped() >= 10);
    assert_true(told == nk_log_dropped());
    assert_true(got == written + 2 - nk_log_dropped());
    free(text);
    close_pair(p);
}

static void a_full_pipe_blocks_nothing(void **state)
{
    (void)state;
    nothing_blocks_and_the_dropped_are_counted(open_pipe());
}

static void a_full_socket_blocks_nothing(void **state)
{
    (void)state;
    nothing_blocks_and_the_dropped_are_counted(open_socket());
}

/* Root's pipe is closed to another user, whose log must do without a description of its own. */
static void a_pipe_that_cannot_be_reopened_blocks_nothing(void **state)
{
    struct nk_creds as = {.uid = 65534, .gid = 65534};
    struct pair p;

    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can become another */
    p = open_pipe();
    assert_int_equal(nk_job_become(&as), 0);
    nothing_blocks_and_the_dropped_are_counted(p);
    nk_job_restore();
}

static void a_lost_reader_costs_only_lines(void **state)
{
    struct pair p = open_socket();

    (void)state;
    nk_log_init(p.out, NK_LOG_INFO, true);
    close(p.in);
    p.in = -1;
    nk_log_msg(NK_LOG_INFO, "e", "nobody reads");
    assert_true(nk_log_dropped() == 1);
    assert_false(nk_log_pending());
    close_pair(p);
}

static void a_file_is_appended_to(void **state)
{
    char path[] = "/tmp/nk_test_log_XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    char text[512] = "";

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(write(fd, "first\n", 6), 6);
    nk_log_init(fd, NK_LOG_INFO, false);
    nk_log_msg(NK_LOG_INFO, "e", "second");
    nk_log_fini();
    assert_int_equal(write(fd, "third\n", 6), 6);
    assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
    assert_memory_equal(text, "first\n", 6);
    assert_non_null(strstr(text, "second\nthird\n"));
    close(fd);
}

static void no_descriptor_means_no_log(void **state)
{
    (void)state;
    nk_log_init(-1, NK_LOG_DEBUG, true);
    assert_false(nk_log_on(NK_LOG_ERROR));
    nk_log_msg(NK_LOG_ERROR, "e", "goes nowhere");
    nk_log_flush();
    assert_false(nk_log_pending());
    assert_int_equal(nk_log_fd(), -1);
    nk_log_fini();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_matters_is_written),
        cmocka_unit_test(a_full_pipe_blocks_nothing),
        cmocka_unit_test(a_full_socket_blocks_nothing),
        cmocka_unit_test(a_pipe_that_cannot_be_reopened_blocks_nothing),
        cmocka_unit_test(a_lost_reader_costs_only_lines),
        cmocka_unit_test(a_file_is_appended_to),
        cmocka_unit_test(no_descriptor_means_no_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
