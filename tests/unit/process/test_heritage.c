#include "process/heritage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define BIT(signo) (UINT64_C(1) << ((signo)-1))

/* In a child of its own: what it does to descriptors and signals is gone with it. */
static int in_child(int (*fn)(void))
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(fn());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int record(void)
{
    struct nk_heritage h;
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR2);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGPIPE, SIG_DFL);
    nk_heritage_record(&h);
    if (h.blocked != BIT(SIGUSR2) || !(h.ignored & BIT(SIGHUP)) || (h.ignored & BIT(SIGPIPE)))
        return 1;
    return h.parent == getppid() && h.nofile > 0 && h.fd_count == 0 ? 0 : 2;
}

static void the_start_is_recorded_as_it_was(void **state)
{
    (void)state;
    assert_int_equal(in_child(record), 0);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static int close_others(void)
{
    struct nk_heritage h = {.fds = {70, 50}, .fd_count = 2};
    const int made[] = {40, 50, 60, 70, 80};
    int missing = -1;

    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        (void)dup2(1, made[i]);
    (void)close(0);
    if (nk_heritage_close_fds(&h, 60, &missing) != 0 || missing != -1)
        return 1;
    if (!is_open(50) || !is_open(60) || !is_open(70) || is_open(40) || is_open(80))
        return 2;
    if (!is_open(0)) /* nothing that is opened later becomes a standard stream */
        return 3;
    return fcntl(50, F_GETFD) == FD_CLOEXEC && fcntl(60, F_GETFD) == FD_CLOEXEC ? 0 : 4;
}

static void all_but_the_named_descriptors_are_closed(void **state)
{
    (void)state;
    assert_int_equal(in_child(close_others), 0);
}

static int name_missing(void)
{
    const struct nk_heritage h = {.fds = {55}, .fd_count = 1};
    int missing = -1;

    (void)close(55);
    return nk_heritage_close_fds(&h, -1, &missing) == -EBADF && missing == 55 ? 0 : 1;
}

static void one_that_is_not_open_is_named(void **state)
{
    (void)state;
    assert_int_equal(in_child(name_missing), 0);
}

static int hand_on(void)
{
    struct nk_heritage h = {.ignored = BIT(SIGHUP), .fds = {50}, .fd_count = 1};
    char pid[16] = "", want[16];
    struct sigaction now;
    long own = getpid();
    size_t n = 0;

    (void)dup3(1, 50, O_CLOEXEC);
    (void)signal(SIGHUP, SIG_DFL);
    (void)signal(SIGTERM, SIG_IGN);
    h.listen_pid = pid;
    if (nk_heritage_set_signals(&h) != 0 || nk_heritage_keep_fds(&h) != 0)
        return 1;
    nk_heritage_name_pid(&h);
    if (sigaction(SIGHUP, NULL, &now) < 0 || now.sa_handler != SIG_IGN)
        return 2;
    if (sigaction(SIGTERM, NULL, &now) < 0 || now.sa_handler != SIG_DFL)
        return 3;
    for (long rest = own; rest > 0; rest /= 10)
        n++;
    want[n] = '\0';
    for (; own > 0; own /= 10)
        want[--n] = (char)('0' + own % 10);
    return strcmp(pid, want) == 0 && fcntl(50, F_GETFD) == 0 ? 0 : 4;
}

static void signals_descriptors_and_the_pid_are_handed_on(void **state)
{
    (void)state;
    assert_int_equal(in_child(hand_on), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_start_is_recorded_as_it_was),
        cmocka_unit_test(all_but_the_named_descriptors_are_closed),
        cmocka_unit_test(one_that_is_not_open_is_named),
        cmocka_unit_test(signals_descriptors_and_the_pid_are_handed_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
