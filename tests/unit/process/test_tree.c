#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/tree.h"

#define NOBODYS_MARK 3999999999u
#define WAIT_MS 20000

static void block(int how, sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGTERM);
    (void)sigprocmask(how, set, NULL);
}

static void await_pending(void)
{
    sigset_t set;

    do {
        (void)poll(NULL, 0, 1);
        (void)sigpending(&set);
    } while (!sigismember(&set, SIGTERM));
}

/* As shells do: nothing is taken from before the child is there until it has started. */
static void start_a_child_meanwhile(int told)
{
    sigset_t set;

    block(SIG_BLOCK, &set);
    (void)write(told, "r", 1);
    await_pending();
    if (fork() == 0) {
        block(SIG_UNBLOCK, &set);
        (void)write(told, "c", 1);
        for (;;)
            (void)pause();
    }
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void start_a_child_when_it_is_read(int told)
{
    sigset_t set;
    int signo;

    block(SIG_BLOCK, &set);
    (void)write(told, "r", 1);
    await_pending();
    (void)sigwait(&set, &signo);
    if (fork() == 0) {
        block(SIG_UNBLOCK, &set);
        (void)write(told, "c", 1);
        for (;;)
            (void)pause();
    }
    for (;;)
        (void)pause();
}

/* Leads a session of its own. `told`: the reader of what it writes; EOF when all of it are gone. */
static pid_t lead(void (*play)(int told), int *out_told)
{
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        (void)setsid();
        play(ends[1]);
        _exit(0);
    }
    (void)close(ends[1]);
    *out_told = ends[0];
    return pid;
}

static char hear(int told)
{
    struct pollfd p = {.fd = told, .events = POLLIN};
    char c = 0;

    assert_int_equal(poll(&p, 1, WAIT_MS), 1);
    return read(told, &c, 1) == 1 ? c : 0;
}

static void a_child_whose_parent_held_the_signal_back_hears_it(void **state)
{
    int told;
    pid_t pid = lead(start_a_child_meanwhile, &told);
    struct nk_tree tree = {.leader = pid};
    char c;

    (void)state;
    assert_int_equal(hear(told), 'r');
    assert_int_equal(nk_tree_signal(&tree, SIGTERM), 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    c = hear(told); /* of the child, if it was told so late */
    assert_int_equal(c == 'c' ? hear(told) : c, 0);
    (void)close(told);
}

static void a_child_that_is_started_on_hearing_it_is_left_alone(void **state)
{
    int told;
    pid_t pid = lead(start_a_child_when_it_is_read, &told);
    struct nk_tree tree = {.leader = pid};
    struct pollfd p = {.fd = told, .events = POLLIN};

    (void)state;
    assert_int_equal(hear(told), 'r');
    assert_int_equal(nk_tree_signal(&tree, SIGTERM), 1);
    assert_int_equal(hear(told), 'c');
    assert_int_equal(nk_tree_signal(&tree, 0), 2);
    assert_int_equal(poll(&p, 1, 0), 0);
    assert_int_equal(nk_tree_kill(&tree, WAIT_MS), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)close(told);
}

/* One look is all that it takes: that it was a slow one is no reason to call it failed. */
static void waking_is_done_after_one_look_however_long_that_took(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++)
        assert_int_equal(nk_tree_freeze(NOBODYS_MARK, 1, false, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waking_is_done_after_one_look_however_long_that_took),
        cmocka_unit_test(a_child_whose_parent_held_the_signal_back_hears_it),
        cmocka_unit_test(a_child_that_is_started_on_hearing_it_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
