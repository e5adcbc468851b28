#include "spawn_fixture.h"

#include <sys/resource.h>

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

static void the_directory_is_entered_as_the_user(void **state)
{
    char dir[] = "/tmp/nk-child-XXXXXX";
    struct command c;

    (void)state;
    if (geteuid() != 0)
        skip();                    /* needs root */
    assert_non_null(mkdtemp(dir)); /* 0700, ours */
    command_init(&c, &fx, (const char *const[]){"/bin/echo", "ran", NULL});
    c.spawn.switch_user = true;
    c.spawn.creds = (struct nk_creds){.uid = 54321, .gid = 54321};
    c.spawn.cwd = dir;
    command_start(&c);
    command_wait(&c);
    (void)rmdir(dir);
    assert_not_started(&c, "chdir", EACCES);
}

static void limits_umask_oom_score_and_priority_are_set(void **state)
{
    const char *script =
        "ulimit -n; ulimit -u; ulimit -f; umask; cat /proc/self/oom_score_adj; nice";
    const char *const argv[] = {"/bin/bash", "-c", script, NULL};
    mode_t before = umask(077);
    struct command c;

    (void)state;
    if (access("/bin/bash", X_OK) < 0)
        skip(); /* needs bash: sh need not know ulimit -u */
    if (geteuid() == 0)
        assert_int_equal(setpriority(PRIO_PROCESS, 0, -5), 0);
    command_init(&c, &fx, argv);
    c.spawn.oom_score_adj = 500;
    c.spawn.limits = (struct nk_limits){.nproc = 777, .nofile_soft = 99, .fsize = 1 << 20};
    command_start(&c);
    command_wait(&c);
    (void)umask(before);
    (void)setpriority(PRIO_PROCESS, 0, 0);
    assert_string_equal(c.text, "99\n777\n1024\n0022\n500\n0\n");
}

/* The memory that a child shares with a daemon that is not dumpable belongs to root in /proc. */
static void the_oom_score_is_raised_by_a_daemon_that_is_not_dumpable_too(void **state)
{
    int dumpable = prctl(PR_GET_DUMPABLE);
    struct command c;
    char path[64];
    char score[16] = "";
    int hold, fd;

    (void)state;
    (void)prctl(PR_SET_DUMPABLE, 0L);
    hold = command_hold_scored(&c, &fx, 500);
    (void)prctl(PR_SET_DUMPABLE, (long)dumpable);
    (void)snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)c.pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, score, sizeof score - 1) > 0);
    (void)close(fd);
    command_release(&c, hold);
    assert_string_equal(score, "500\n");
}

static void a_limit_above_the_inherited_one_is_cut_to_it(void **state)
{
    struct rlimit lim;
    struct command c;
    char want[32];

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &lim), 0);
    command_init(&c, &fx, (const char *const[]){"/bin/sh", "-c", "ulimit -n", NULL});
    c.spawn.limits.nofile_soft = UINT64_MAX - 1;
    command_start(&c);
    command_wait(&c);
    (void)snprintf(want, sizeof want, "%llu\n", (unsigned long long)lim.rlim_max);
    assert_string_equal(c.text, want);
}

static void a_terminal_becomes_the_controlling_one(void **state)
{
    const char *const argv[] = {"/bin/sh", "-c", "echo here >/dev/tty", NULL};
    struct command c;
    char text[64] = "";
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    (void)state;
    if (master < 0)
        skip(); /* needs terminals */
    assert_int_equal(grantpt(master) | unlockpt(master), 0);
    command_init(&c, &fx, argv);
    (void)close(c.spawn.stdio[0]);
    c.spawn.stdio[0] = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    c.spawn.tty = true;
    command_start(&c);
    command_wait(&c);
    assert_int_equal(c.status, 0);
    assert_true(read(master, text, sizeof text - 1) > 0);
    assert_string_equal(text, "here\r\n");
    (void)close(master);
}

static void what_is_no_terminal_cannot_be_the_controlling_one(void **state)
{
    struct command c;

    (void)state;
    command_init(&c, &fx, (const char *const[]){"/bin/echo", "ran", NULL});
    c.spawn.tty = true;
    command_start(&c);
    command_wait(&c);
    assert_not_started(&c, "tty", ENOTTY);
}

static void run_in_path(struct command *c, const char *name, const char *path)
{
    const char *const argv[] = {name, "ran", NULL};
    const char *const envp[] = {"HOME=/", path, NULL};

    command_init(c, &fx, argv);
    c->spawn.envp = envp;
    command_start(c);
    command_wait(c);
}

static void a_name_without_slash_is_looked_up_in_the_path_given(void **state)
{
    char dir[] = "/tmp/nk-child-XXXXXX";
    char file[64], path[128];
    struct command c;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(file, sizeof file, "%s/echo", dir);
    assert_true(close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644)) == 0);
    (void)snprintf(path, sizeof path, "PATH=/nowhere:%s:/bin", dir);
    run_in_path(&c, "echo", path); /* not executable in the second, found in the third */
    assert_string_equal(c.text, "ran\n");
    (void)snprintf(path, sizeof path, "PATH=/nowhere:%s:/also/nowhere", dir);
    run_in_path(&c, "echo", path);
    assert_not_started(&c, "exec", EACCES);
    run_in_path(&c, "no-such-program", "PATH=/usr/bin:/bin");
    assert_not_started(&c, "exec", ENOENT);
    run_in_path(&c, "echo", "NOPATH=1"); /* a default path */
    assert_string_equal(c.text, "ran\n");
    run_in_path(&c, "", "PATH=/bin");
    assert_not_started(&c, "exec", ENOENT);
    assert_int_equal(chmod(file, 0755), 0); /* empty: no format that can be executed */
    (void)snprintf(path, sizeof path, "PATH=%s:/bin", dir);
    run_in_path(&c, "echo", path);
    (void)unlink(file);
    (void)rmdir(dir);
    assert_not_started(&c, "exec", ENOEXEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_directory_is_entered_as_the_user),
        cmocka_unit_test(limits_umask_oom_score_and_priority_are_set),
        cmocka_unit_test(the_oom_score_is_raised_by_a_daemon_that_is_not_dumpable_too),
        cmocka_unit_test(a_limit_above_the_inherited_one_is_cut_to_it),
        cmocka_unit_test(a_terminal_becomes_the_controlling_one),
        cmocka_unit_test(what_is_no_terminal_cannot_be_the_controlling_one),
        cmocka_unit_test(a_name_without_slash_is_looked_up_in_the_path_given),
    };

    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
