#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "base/fd_io.h"

#define MUCH (1024 * 1024) /* many times what a pipe holds */

static uint8_t sent[MUCH], got[MUCH];

struct reader {
    pthread_t writer;
    int fd;
    ssize_t n;
};

static void on_signal(int number)
{
    (void)number;
}

/* In pieces, with a signal to the writer before each: a write is cut short or interrupted. */
static void *read_pieces(void *arg)
{
    struct reader *r = arg;
    ssize_t n = 1;

    for (r->n = 0; n > 0 && r->n < MUCH; r->n += n) {
        (void)pthread_kill(r->writer, SIGUSR1);
        n = read(r->fd, got + r->n, 5000);
    }
    return NULL;
}

static void all_is_written_though_signals_come(void **state)
{
    const struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART */
    struct reader r = {.writer = pthread_self()};
    pthread_t thread;
    int ends[2];

    (void)state;
    for (size_t i = 0; i < MUCH; i++)
        sent[i] = (uint8_t)(i * 7 + i / 251);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    r.fd = ends[0];
    assert_int_equal(pthread_create(&thread, NULL, read_pieces, &r), 0);
    assert_int_equal(nk_fd_io_write(ends[1], sent, MUCH), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(r.n, MUCH);
    assert_memory_equal(got, sent, MUCH);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void a_read_goes_on_until_it_is_full_or_at_the_end(void **state)
{
    char text[8] = "";
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(write(ends[1], "abc", 3), 3);
    assert_int_equal(nk_fd_io_read(ends[0], text, 3), 3);
    assert_int_equal(write(ends[1], "defg", 4), 4);
    assert_int_equal(nk_fd_io_read(ends[0], text, 5), -EAGAIN);
    (void)close(ends[1]);
    assert_int_equal(nk_fd_io_read(ends[0], text, 5), 0);
    assert_int_equal(nk_fd_io_read(ends[1], text, 5), -EBADF);
    (void)close(ends[0]);
}

static void a_place_in_a_file_is_read_without_moving_it(void **state)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    char text[4] = "";

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(nk_fd_io_read_at(fd, text, 3, 1), 3);
    assert_string_equal(text, "ELF");
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
    assert_int_equal(nk_fd_io_read_at(fd, text, 4, lseek(fd, 0, SEEK_END) - 2), 2);
    (void)close(fd);
}

static void what_a_descriptor_does_not_take_is_an_error(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(nk_fd_io_write(ends[1], sent, MUCH), -EAGAIN);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)close(ends[0]);
    assert_int_equal(nk_fd_io_write(ends[1], sent, 1), -EPIPE);
    assert_int_equal(nk_fd_io_write(ends[1], sent, 0), 0);
    (void)close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_written_though_signals_come),
        cmocka_unit_test(a_read_goes_on_until_it_is_full_or_at_the_end),
        cmocka_unit_test(a_place_in_a_file_is_read_without_moving_it),
        cmocka_unit_test(what_a_descriptor_does_not_take_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
