#include "process/program.h"

#include "spawn_fixture.h"

struct run {
    struct fixture fx;
    struct nk_jobs *jobs;
    struct nk_heritage heritage;
    struct nk_program *program;
    const char *argv[4];
    unsigned exits, overs;
    int status;
};

static void on_exit_told(void *ctx, int status)
{
    struct run *r = ctx;

    r->exits++;
    r->status = status;
}

static void on_over_told(void *ctx)
{
    struct run *r = ctx;

    r->overs++;
}

static void begin(struct run *r, const char *const *argv, bool alone, bool leave)
{
    struct nk_program_config cfg = {.argv = r->argv, .envp = fixture_env, .cwd = "/"};
    sigset_t child;

    /* The reaper before has left it blocked; a shell that is born so does not hear of its children. */
    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    (void)sigprocmask(SIG_UNBLOCK, &child, NULL);
    memset(r, 0, sizeof *r);
    for (size_t i = 0; argv[i]; i++)
        r->argv[i] = argv[i]; /* the program borrows it for its life */
    nk_heritage_record(&r->heritage);
    fixture_open(&r->fx, (struct fixture_options){.adopt = true});
    assert_int_equal(nk_jobs_new(&r->fx.loop, &r->jobs), 0);
    cfg.loop = &r->fx.loop;
    cfg.jobs = r->jobs;
    cfg.reaper = r->fx.reaper;
    cfg.spawner = r->fx.spawner;
    cfg.heritage = &r->heritage;
    cfg.alone = alone;
    cfg.leave = leave;
    cfg.on_exit = on_exit_told;
    cfg.on_over = on_over_told;
    cfg.ctx = r;
    assert_int_equal(nk_program_open(&cfg, &r->program), 0);
    assert_int_equal(r->exits, 0); /* never from within the call */
}

static void wait_exit(struct run *r)
{
    while (r->exits == 0 && !r->fx.expired)
        (void)uv_run(&r->fx.loop, UV_RUN_ONCE);
    assert_int_equal(r->exits, 1);
}

static void wait_over(struct run *r)
{
    while (r->overs == 0 && !r->fx.expired)
        (void)uv_run(&r->fx.loop, UV_RUN_ONCE);
    assert_int_equal(r->overs, 1);
}

static void finish(struct run *r)
{
    nk_program_close(&r->program);
    assert_null(r->program);
    fixture_close(&r->fx);
    nk_jobs_free(r->jobs);
    assert_int_equal(r->exits, 1);
}

static void begin_script(struct run *r, const char *script)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};

    begin(r, argv, false, false);
}

/* Until the script has made the file, which goes. */
static void wait_file(struct run *r, const char *path)
{
    while (access(path, F_OK) < 0 && !r->fx.expired)
        (void)uv_run(&r->fx.loop, UV_RUN_NOWAIT);
    assert_int_equal(unlink(path), 0);
}

static void its_status_is_that_of_a_shell(void **state)
{
    static const struct {
        const char *script;
        int status;
    } each[] = {{"exit 0", 0}, {"exit 255", 255}, {"exit 127", 127}, {"kill -KILL $$", 137}};

    (void)state;
    for (size_t i = 0; i < NK_COUNT(each); i++) {
        struct run r;

        begin_script(&r, each[i].script);
        wait_exit(&r);
        assert_int_equal(r.status, each[i].status);
        finish(&r);
    }
}

static void one_that_cannot_be_executed_is_126_or_127(void **state)
{
    static const char *const missing[] = {"/no/such/program", NULL};
    static const char *const folder[] = {"/", NULL};
    struct run r;

    (void)state;
    begin(&r, missing, false, false);
    wait_exit(&r);
    assert_int_equal(r.status, 127);
    finish(&r);
    begin(&r, folder, false, false);
    wait_exit(&r);
    assert_int_equal(r.status, 126);
    finish(&r);
}

static void a_signal_that_comes_before_it_runs_reaches_it(void **state)
{
    static const char *const argv[] = {"/bin/sleep", "1000", NULL};
    struct run r;

    (void)state;
    begin(&r, argv, false, false);
    nk_program_signal(r.program, SIGUSR1);
    wait_exit(&r);
    assert_int_equal(r.status, 128 + SIGUSR1);
    finish(&r);
}

static void its_end_takes_along_what_it_left(void **state)
{
    char path[64], script[256];
    struct run r;

    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/nook-program-%d", (int)getpid());
    (void)snprintf(script, sizeof script,
                   "trap 'exit 7' TERM; (trap '' TERM; setsid sleep 1000) & setsid sleep 1000 & "
                   ": > %s; while :; do sleep 0.01; done",
                   path);
    begin_script(&r, script);
    wait_file(&r, path);
    nk_program_end(r.program, SIGTERM, 100);
    wait_over(&r);
    assert_int_equal(r.status, 7);
    nk_program_sweep();
    finish(&r);
}

static void one_that_heeds_nothing_is_killed_after_the_grace(void **state)
{
    char path[64], script[128];
    struct run r;

    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/nook-program-%d", (int)getpid());
    (void)snprintf(script, sizeof script, "trap '' TERM; : > %s; while :; do sleep 0.01; done",
                   path);
    begin_script(&r, script);
    wait_file(&r, path);
    nk_program_end(r.program, SIGTERM, 600000);
    nk_program_end(r.program, SIGTERM, 0); /* again: only the grace is less */
    wait_over(&r);
    assert_int_equal(r.status, 137);
    finish(&r);
}

static void alone_only_main_gets_the_signal(void **state)
{
    char path[64], script[256];
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    struct run r;

    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/nook-program-%d", (int)getpid());
    (void)snprintf(script, sizeof script,
                   "trap 'kill $child; wait $child; exit $?' USR1; sleep 1000 & child=$!; : > %s; "
                   "while :; do wait; done",
                   path);
    begin(&r, argv, true, false);
    wait_file(&r, path);
    nk_program_signal(r.program, SIGUSR1);
    wait_exit(&r);
    assert_int_equal(r.status, 128 + SIGTERM); /* the child died of its parent's, not of ours */
    finish(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_status_is_that_of_a_shell),
        cmocka_unit_test(one_that_cannot_be_executed_is_126_or_127),
        cmocka_unit_test(a_signal_that_comes_before_it_runs_reaches_it),
        cmocka_unit_test(its_end_takes_along_what_it_left),
        cmocka_unit_test(one_that_heeds_nothing_is_killed_after_the_grace),
        cmocka_unit_test(alone_only_main_gets_the_signal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
