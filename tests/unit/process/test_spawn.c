#include "spawn_fixture.h"

#include <dirent.h>

#define STARTS 1000
#define AT_ONCE 32

static struct fixture fx;

static int open_fixture(void **state)
{
    (void)state;
    fixture_open(&fx, (struct fixture_options){.adopt = true});
    return 0;
}

static int close_fixture(void **state)
{
    (void)state;
    fixture_close(&fx);
    return 0;
}

static unsigned count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

static void a_program_runs_and_its_status_is_told(void **state)
{
    struct command c;

    (void)state;
    command_run(&c, &fx, "echo out; exit 7");
    assert_string_equal(c.text, "out\n");
    assert_true(WIFEXITED(c.status));
    assert_int_equal(WEXITSTATUS(c.status), 7);
    assert_int_equal(c.spawn.before_exec, 0);
    command_run(&c, &fx, "kill -KILL $$");
    assert_true(WIFSIGNALED(c.status));
    assert_int_equal(WTERMSIG(c.status), SIGKILL);
}

static void a_failed_start_says_where_and_why(void **state)
{
    static const struct {
        const char *program, *cwd, *stage;
        int sys;
    } cases[] = {
        {"/nowhere/program", "/", "exec", ENOENT},
        {"/etc/passwd", "/", "exec", EACCES},
        {"/bin", "/", "exec", EACCES},
        {"/etc/passwd/x", "/", "exec", ENOTDIR},
        {"/bin/true", "/nowhere", "chdir", ENOENT},
        {"/bin/true", "/etc/passwd", "chdir", ENOTDIR},
    };

    (void)state;
    for (size_t i = 0; i < NK_COUNT(cases); i++) {
        struct command c;

        command_init(&c, &fx, (const char *const[]){cases[i].program, NULL});
        c.spawn.cwd = cases[i].cwd;
        command_start(&c);
        command_wait(&c);
        assert_int_equal(c.err.code, NK_EXEC_FAILED);
        assert_string_equal(c.err.stage, cases[i].stage);
        assert_int_equal(c.err.sys, cases[i].sys);
    }
}

static void a_missing_descriptor_is_a_failed_start(void **state)
{
    struct command c;

    (void)state;
    command_init(&c, &fx, (const char *const[]){"/bin/true", NULL});
    (void)close(c.spawn.stdio[2]);
    c.spawn.stdio[2] = -1;
    command_start(&c);
    command_wait(&c);
    assert_int_equal(c.err.code, NK_EXEC_FAILED);
    assert_string_equal(c.err.stage, "stdio");
    assert_int_equal(c.err.sys, EBADF);
}

static void every_failure_in_a_row_is_told_and_leaves_nothing(void **state)
{
    struct command c, held;
    int hold = command_hold(&held, &fx); /* so these go through the threads */
    unsigned before = count_fds();

    (void)state;
    for (int i = 0; i < 50; i++) {
        command_init(&c, &fx, (const char *const[]){"/nowhere/program", NULL});
        command_start(&c);
        command_wait(&c);
        assert_int_equal(c.err.sys, ENOENT);
        command_run(&c, &fx, "exit 3");
        assert_int_equal(c.err.code, NK_OK);
        assert_int_equal(WEXITSTATUS(c.status), 3);
    }
    assert_int_equal(count_fds(), before);
    command_release(&held, hold);
}

/* All AT_ONCE slots start again as soon as theirs is over. */
static struct command slots[AT_ONCE];
static unsigned started, over, exact;

static void start_next(struct command *c)
{
    static const char *const script[] = {"/bin/sh", "-c", "exit $0", NULL, NULL};
    static char codes[AT_ONCE][8];
    static const char *argvs[AT_ONCE][5];
    size_t i = (size_t)(c - slots);

    (void)snprintf(codes[i], sizeof codes[i], "%u", started % 256);
    memcpy(argvs[i], script, sizeof script);
    argvs[i][3] = codes[i];
    command_init(c, &fx, argvs[i]);
    (void)close(c->out);
    started++;
}

static void on_slot_over(struct command *c)
{
    unsigned want = (unsigned)atol(c->spawn.argv[3]);

    over++;
    exact += !c->err.code && WIFEXITED(c->status) && (unsigned)WEXITSTATUS(c->status) == want;
    if (started == STARTS)
        return;
    start_next(c);
    c->on_end = on_slot_over;
    command_start(c);
}

static void a_thousand_starts_32_at_a_time_give_exact_statuses(void **state)
{
    unsigned before = count_fds();

    (void)state;
    for (size_t i = 0; i < AT_ONCE; i++) {
        start_next(&slots[i]);
        slots[i].on_end = on_slot_over;
        command_start(&slots[i]);
    }
    while (over < STARTS && !fx.expired)
        (void)uv_run(&fx.loop, UV_RUN_ONCE);
    assert_int_equal(over, STARTS);
    assert_int_equal(exact, STARTS);
    assert_int_equal(nk_spawner_pending(fx.spawner), 0);
    assert_int_equal(count_fds(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie */
    assert_true(nk_reaper_childless(fx.reaper));
}

static void start_as(struct command *c, const char *const *argv, uint64_t nproc, int input)
{
    command_init(c, &fx, argv);
    if (input >= 0) {
        (void)close(c->spawn.stdio[0]);
        c->spawn.stdio[0] = input;
    }
    c->spawn.switch_user = true;
    c->spawn.creds = (struct nk_creds){.uid = 54399, .gid = 54399};
    c->spawn.limits.nproc = nproc;
    command_start(c);
    command_wait_told(c);
}

static void no_process_left_for_the_user_is_overload_not_failure(void **state)
{
    static const char *const cat[] = {"/bin/cat", NULL};
    struct command first, second, third;
    int ends[2];

    (void)state;
    if (geteuid() != 0)
        skip(); /* needs root */
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    start_as(&first, cat, 0, fcntl(ends[0], F_DUPFD_CLOEXEC, 3));
    start_as(&second, cat, 0, ends[0]);
    start_as(&third, (const char *const[]){"/bin/true", NULL}, 1, -1);
    command_wait(&third);
    (void)close(ends[1]);
    command_wait(&first);
    command_wait(&second);
    assert_int_equal(third.err.code, NK_OVERLOADED);
    assert_int_equal(third.err.sys, EAGAIN);
}

/* A search so long that the child can be stopped before its exec. */
static const char *long_path(void)
{
    static char path[200000];
    size_t n = (size_t)snprintf(path, sizeof path, "PATH=/nowhere");

    while (n + 3 < sizeof path)
        n += (size_t)snprintf(path + n, sizeof path - n, ":/x");
    return path;
}

struct stopper {
    struct command *command;
    uv_thread_t thread;
    unsigned times; /* 0: until `over` */
    atomic_bool over;
};

static void stop_when_there(void *arg)
{
    struct stopper *st = arg;
    pid_t pid;

    while ((pid = atomic_load(&st->command->spawn.start.pid)) == 0)
        (void)sched_yield();
    for (unsigned i = 0; (st->times == 0 || i < st->times) && !atomic_load(&st->over); i++) {
        (void)kill(pid, SIGSTOP);
        (void)sched_yield();
    }
}

static void run_stopped(struct fixture *f, struct command *c, unsigned times)
{
    static const char *const argv[] = {"no-such-program", NULL};
    const char *const envp[] = {long_path(), NULL};
    struct stopper st = {.command = c, .times = times};

    command_init(c, f, argv);
    c->spawn.envp = envp;
    assert_int_equal(uv_thread_create(&st.thread, stop_when_there, &st), 0);
    command_start(c);
    command_wait_told(c);
    atomic_store(&st.over, true);
    (void)uv_thread_join(&st.thread);
    command_wait(c);
}

static void assert_a_child_held_for_ever_is_killed(struct fixture_options options)
{
    struct fixture f;
    struct command c;

    fixture_open(&f, options);
    run_stopped(&f, &c, 0);
    assert_int_equal(c.err.code, NK_OVERLOADED);
    assert_true(c.pid <= 0);
    command_run(&c, &f, "exit 5"); /* and the next start goes through */
    assert_int_equal(WEXITSTATUS(c.status), 5);
    fixture_close(&f);
}

static void a_child_held_before_its_exec_is_killed_by_the_watchdog(void **state)
{
    (void)state;
    assert_a_child_held_for_ever_is_killed((struct fixture_options){.deadline_ms = 50});
}

static void a_child_that_the_loop_starts_is_watched_over_too(void **state)
{
    (void)state;
    assert_a_child_held_for_ever_is_killed(
        (struct fixture_options){.adopt = true, .no_filter = true, .deadline_ms = 50});
}

static void a_child_that_was_stopped_is_woken_and_gets_through(void **state)
{
    struct command c;

    (void)state;
    for (unsigned i = 1; i <= 10; i++) {
        run_stopped(&fx, &c, i);
        assert_int_equal(c.err.code, NK_EXEC_FAILED); /* its search came to the end */
        assert_int_equal(c.err.sys, ENOENT);
    }
}

static void kill_when_there(void *arg)
{
    struct command *c = arg;
    pid_t pid;

    while ((pid = atomic_load(&c->spawn.start.pid)) == 0)
        (void)sched_yield();
    (void)kill(pid, SIGKILL);
}

static void a_child_killed_before_its_exec_was_never_started_or_died_of_it(void **state)
{
    static const char *const argv[] = {"/bin/cat", NULL};
    struct command c;

    (void)state;
    for (int i = 0; i < 20; i++) {
        uv_thread_t killer;

        command_init(&c, &fx, argv);
        assert_int_equal(uv_thread_create(&killer, kill_when_there, &c), 0);
        command_start(&c);
        command_wait(&c);
        (void)uv_thread_join(&killer);
        if (c.err.code)
            assert_int_equal(c.err.code, NK_OVERLOADED);
        else
            assert_true(c.reaped == 1);
    }
}

static void steps_have_the_names_of_the_wire(void **state)
{
    (void)state;
    assert_string_equal(nk_spawn_step_name(NK_STEP_SETGID), "setgid");
    assert_string_equal(nk_spawn_step_name(NK_STEP_EXEC), "exec");
    for (int i = 0; i < NK_STEP_COUNT; i++)
        assert_non_null(nk_spawn_step_name((enum nk_spawn_step)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_runs_and_its_status_is_told),
        cmocka_unit_test(a_failed_start_says_where_and_why),
        cmocka_unit_test(a_missing_descriptor_is_a_failed_start),
        cmocka_unit_test(every_failure_in_a_row_is_told_and_leaves_nothing),
        cmocka_unit_test(a_thousand_starts_32_at_a_time_give_exact_statuses),
        cmocka_unit_test(no_process_left_for_the_user_is_overload_not_failure),
        cmocka_unit_test(a_child_held_before_its_exec_is_killed_by_the_watchdog),
        cmocka_unit_test(a_child_that_was_stopped_is_woken_and_gets_through),
        cmocka_unit_test(a_child_that_the_loop_starts_is_watched_over_too),
        cmocka_unit_test(a_child_killed_before_its_exec_was_never_started_or_died_of_it),
        cmocka_unit_test(steps_have_the_names_of_the_wire),
    };

    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
