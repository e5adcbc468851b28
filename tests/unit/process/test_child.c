#include "spawn_fixture.h"

#include <sys/resource.h>
#include <sys/syscall.h>

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

/* This program again, as a child that lists its descriptors: a shell would open some of its own. */
static int list_fds(void)
{
    for (int fd = 0; fd < 4096; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            printf("%d ", fd);
    }
    (void)fflush(stdout);
    _exit(0); /* a sanitizer's work at exit needs rights that a command has not */
}

static const char *self(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    assert_true(n > 0);
    path[n] = '\0';
    return path;
}

static void run_list_fds(struct fixture *f)
{
    const char *const argv[] = {self(), "list-fds", NULL};
    struct command c;
    int open_ones[200];

    for (size_t i = 0; i < NK_COUNT(open_ones); i++)
        open_ones[i] = dup(0); /* not close-on-exec */
    command_init(&c, f, argv);
    command_start(&c);
    command_wait(&c);
    for (size_t i = 0; i < NK_COUNT(open_ones); i++)
        (void)close(open_ones[i]);
    assert_string_equal(c.text, "0 1 2 ");
}

static void a_child_has_descriptors_0_1_2_and_no_other(void **state)
{
    struct fixture loop;

    (void)state;
    run_list_fds(&fx);
    fixture_open(&loop, (struct fixture_options){.adopt = true, .no_filter = true});
    run_list_fds(&loop);
    fixture_close(&loop);
}

static void descriptors_are_closed_without_close_range_too(void **state)
{
    struct fixture without;

    (void)state;
    fixture_open(&without, (struct fixture_options){.no_close_range = true});
    run_list_fds(&without);
    fixture_close(&without);
}

static void stdio_may_itself_be_numbered_0_to_2_in_any_order(void **state)
{
    const char *const argv[] = {"/bin/sh", "-c", "cat; echo two >&2", NULL};
    int saved[3], in[2], both[2];
    struct command c;

    (void)state;
    command_init(&c, &fx, argv);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(both, O_CLOEXEC), 0);
    assert_int_equal(write(in[1], "one ", 4), 4);
    (void)close(in[1]);
    (void)fflush(stdout);
    for (int i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        (void)close(c.spawn.stdio[i]);
    }
    (void)dup2(in[0], 2);
    (void)dup2(both[1], 0);
    (void)close(1);
    c.spawn.stdio[0] = 2;
    c.spawn.stdio[1] = 0;
    c.spawn.stdio[2] = 0; /* one descriptor twice */
    command_start(&c);
    command_wait_told(&c);
    for (int i = 0; i < 3; i++) {
        (void)dup2(saved[i], i);
        (void)close(saved[i]);
    }
    (void)close(both[1]);
    (void)close(in[0]);
    (void)close(c.out);
    c.out = both[0];
    command_wait(&c);
    assert_string_equal(c.text, "one two\n");
}

static const char *status_line(struct command *c, const char *name)
{
    static char value[256];
    const char *at = strstr(c->text, name);

    assert_non_null(at);
    at += strlen(name);
    at += strspn(at, "\t ");
    (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\n"), at);
    return value;
}

static const char read_status[] = "cat /proc/self/status";

static void signals_are_as_if_nobody_had_touched_them(void **state)
{
    struct fixture own;
    struct command c;
    sigset_t set, old;

    (void)state;
    (void)signal(SIGUSR1, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    fixture_open(&own, (struct fixture_options){0});
    (void)sigfillset(&set);
    (void)sigprocmask(SIG_BLOCK, &set, &old);
    command_run(&c, &own, read_status);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    fixture_close(&own);
    (void)signal(SIGUSR1, SIG_DFL);
    assert_string_equal(status_line(&c, "\nSigIgn:"), "0000000000000000");
    assert_string_equal(status_line(&c, "\nSigBlk:"), "0000000000000000");
    assert_string_equal(status_line(&c, "\nSigPnd:"), "0000000000000000");
}

static void the_parent_keeps_its_signals_and_errno(void **state)
{
    struct fixture loop;
    struct command c;
    sigset_t before, after;

    (void)state;
    fixture_open(&loop, (struct fixture_options){.adopt = true, .no_filter = true});
    (void)sigprocmask(SIG_BLOCK, NULL, &before);
    command_init(&c, &loop, (const char *const[]){"/nowhere/program", NULL});
    errno = EXDEV;
    command_start(&c);
    assert_int_equal(errno, EXDEV);
    (void)sigprocmask(SIG_BLOCK, NULL, &after);
    assert_memory_equal(&before, &after, sizeof(unsigned long));
    command_wait(&c);
    assert_not_started(&c, "exec", ENOENT);
    fixture_close(&loop);
}

static void capture_confinement(struct fixture *f, char *out, size_t size)
{
    struct command c;
    char seccomp[32];

    command_run(&c, f, read_status);
    (void)snprintf(seccomp, sizeof seccomp, "%s", status_line(&c, "\nSeccomp:"));
    (void)snprintf(out, size, "seccomp %s nnp %s", seccomp, status_line(&c, "\nNoNewPrivs:"));
}

struct both {
    char by_loop[64], by_thread[64];
};

/* In a thread of its own, which keeps the filter. */
static void start_both_ways(void *arg)
{
    struct both *both = arg;
    struct fixture f;
    struct command held;
    int hold;

    fixture_open(&f, (struct fixture_options){.adopt = true, .loop_confined = true});
    capture_confinement(&f, both->by_loop, sizeof both->by_loop);
    hold = command_hold(&held, &f);
    capture_confinement(&f, both->by_thread, sizeof both->by_thread);
    command_release(&held, hold);
    fixture_close(&f);
}

static void both_ways_of_starting_confine_alike(void **state)
{
    struct both both;
    uv_thread_t thread;
    char unfiltered[64];
    struct fixture f;

    (void)state;
    assert_int_equal(uv_thread_create(&thread, start_both_ways, &both), 0);
    (void)uv_thread_join(&thread);
    assert_string_equal(both.by_loop, "seccomp 2 nnp 1");
    assert_string_equal(both.by_thread, both.by_loop);
    assert_int_equal(prctl(PR_GET_SECCOMP), 0);
    fixture_open(&f, (struct fixture_options){.adopt = true, .no_filter = true});
    capture_confinement(&f, unfiltered, sizeof unfiltered); /* by the loop, which has no such bit */
    fixture_close(&f);
    assert_string_equal(unfiltered, "seccomp 0 nnp 1");
}

static void assert_only_the_users_rights(struct fixture *f)
{
    static const char *const sets[] = {
        "\nCapInh:", "\nCapPrm:", "\nCapEff:", "\nCapBnd:", "\nCapAmb:"};
    struct command c;

    command_init(&c, f, (const char *const[]){"/bin/cat", "/proc/self/status", NULL});
    c.spawn.switch_user = true;
    c.spawn.creds = (struct nk_creds){54321, 54322, {60007, 27}, 2};
    command_start(&c);
    command_wait(&c);
    assert_string_equal(status_line(&c, "\nUid:"), "54321\t54321\t54321\t54321");
    assert_string_equal(status_line(&c, "\nGid:"), "54322\t54322\t54322\t54322");
    assert_string_equal(status_line(&c, "\nGroups:"), "27 60007 ");
    for (size_t i = 0; i < NK_COUNT(sets); i++)
        assert_string_equal(status_line(&c, sets[i]), "0000000000000000");
}

static void a_users_command_has_its_ids_its_groups_and_no_capability(void **state)
{
    struct fixture loop;

    (void)state;
    if (geteuid() != 0)
        skip(); /* needs root */
    assert_only_the_users_rights(&fx);
    fixture_open(&loop, (struct fixture_options){.adopt = true, .no_filter = true});
    assert_only_the_users_rights(&loop);
    fixture_close(&loop);
    assert_int_equal(geteuid(), 0);
}

static void a_command_of_root_has_no_capability_either(void **state)
{
    struct command c;

    (void)state;
    if (geteuid() != 0)
        skip(); /* needs root */
    command_init(&c, &fx, (const char *const[]){"/bin/cat", "/proc/self/status", NULL});
    c.spawn.switch_user = true;
    command_start(&c);
    command_wait(&c);
    assert_string_equal(status_line(&c, "\nCapPrm:"), "0000000000000000");
    assert_string_equal(status_line(&c, "\nCapBnd:"), "0000000000000000");
}

/* The effective set of this thread, which the starters inherit, without some capabilities. */
static void set_effective(uint32_t without)
{
    struct {
        uint32_t version;
        int pid;
    } head = {0x20080522, 0};
    struct {
        uint32_t effective, permitted, inheritable;
    } data[2];

    assert_int_equal(syscall(SYS_capget, &head, data), 0);
    data[0].effective = data[0].permitted & ~without;
    assert_int_equal(syscall(SYS_capset, &head, data), 0);
}

static void run_dropped(uint32_t without, struct nk_creds creds, const char *stage, int sys)
{
    struct fixture weak;
    struct command c;

    set_effective(without);
    fixture_open(&weak, (struct fixture_options){0});
    set_effective(0);
    command_init(&c, &weak, (const char *const[]){"/bin/echo", "ran", NULL});
    c.spawn.switch_user = true;
    c.spawn.creds = creds;
    command_start(&c);
    command_wait(&c);
    assert_not_started(&c, stage, sys);
    fixture_close(&weak);
}

static void a_failed_step_of_the_id_change_never_reaches_exec(void **state)
{
    const struct nk_creds user = {.uid = 54321, .gid = 54321};
    const struct nk_creds no_uid = {.uid = (uid_t)-1, .gid = 54321};
    const struct nk_creds no_gid = {.uid = 54321, .gid = (gid_t)-1};

    (void)state;
    if (geteuid() != 0)
        skip();                                     /* needs root */
    run_dropped(1u << 6, user, "setgroups", EPERM); /* CAP_SETGID */
    run_dropped(1u << 7, user, "setuid", EPERM);    /* CAP_SETUID */
    run_dropped(0, no_uid, "verify", EPERM);
    run_dropped(0, no_gid, "verify", EPERM);
}

static void without_root_a_change_of_user_is_refused(void **state)
{
    struct command c;

    (void)state;
    if (geteuid() == 0)
        skip(); /* needs to be no root */
    command_init(&c, &fx, (const char *const[]){"/bin/echo", "ran", NULL});
    c.spawn.switch_user = true;
    c.spawn.creds = (struct nk_creds){.uid = 54321, .gid = 54321};
    command_start(&c);
    command_wait(&c);
    assert_not_started(&c, "setgroups", EPERM);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_has_descriptors_0_1_2_and_no_other),
        cmocka_unit_test(descriptors_are_closed_without_close_range_too),
        cmocka_unit_test(stdio_may_itself_be_numbered_0_to_2_in_any_order),
        cmocka_unit_test(signals_are_as_if_nobody_had_touched_them),
        cmocka_unit_test(the_parent_keeps_its_signals_and_errno),
        cmocka_unit_test(both_ways_of_starting_confine_alike),
        cmocka_unit_test(a_users_command_has_its_ids_its_groups_and_no_capability),
        cmocka_unit_test(a_command_of_root_has_no_capability_either),
        cmocka_unit_test(a_failed_step_of_the_id_change_never_reaches_exec),
        cmocka_unit_test(without_root_a_change_of_user_is_refused),
    };

    if (argc > 1 && strcmp(argv[1], "list-fds") == 0)
        return list_fds();
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
