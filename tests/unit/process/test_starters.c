#include "spawn_fixture.h"

#include <poll.h>

#include "base/clock.h"
#include "process/starters.h"

static void run_nothing(struct nk_starter *st, struct nk_spawn *s)
{
    (void)st;
    (void)s;
}

static pid_t stopped_child(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        for (;;)
            (void)raise(SIGSTOP);
    }
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
    return pid;
}

static void look_late(struct nk_starters *t)
{
    uint64_t until = nk_clock_mono_ms() + 2 * NK_STARTER_NUDGE_MS;
    struct nk_list late;

    while (nk_clock_mono_ms() < until)
        (void)poll(NULL, 0, 1);
    nk_list_init(&late);
    nk_starters_expire(t, &late);
}

/* A starter on a busy machine learns late that its child has executed. */
static void a_child_is_woken_before_its_exec_and_never_after_it(void **state)
{
    struct nk_starters t = {.run = run_nothing, .deadline_ms = 60000};
    struct nk_spawn s = {0};
    pid_t pid = stopped_child();
    int status;

    (void)state;
    assert_int_equal(nk_starters_init(&t), 0);
    s.start.pid = pid;
    nk_starter_begin(&t.each[0], &s);
    look_late(&t);
    assert_int_equal(waitpid(pid, &status, WCONTINUED | WNOHANG), 0);
    s.before_exec = 1;
    look_late(&t);
    assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
    assert_true(WIFCONTINUED(status));
    nk_starter_end(&t.each[0]);
    nk_starters_fini(&t);
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_is_woken_before_its_exec_and_never_after_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
