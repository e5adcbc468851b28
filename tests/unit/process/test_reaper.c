#include "spawn_fixture.h"

static struct fixture fx;

static int open_fixture(void **state)
{
    (void)state;
    fixture_open(&fx, (struct fixture_options){.adopt = true, .no_filter = true});
    return 0;
}

static int close_fixture(void **state)
{
    (void)state;
    fixture_close(&fx);
    return 0;
}

static void turn_until_childless(void)
{
    while (!nk_reaper_childless(fx.reaper) && !fx.expired)
        (void)uv_run(&fx.loop, UV_RUN_ONCE);
    assert_false(fx.expired);
}

static void childless_is_told_exactly_while_nothing_is_alive(void **state)
{
    struct command c;
    int hold;

    (void)state;
    assert_true(nk_reaper_childless(fx.reaper));
    hold = command_hold(&c, &fx);
    assert_false(nk_reaper_childless(fx.reaper));
    (void)uv_run(&fx.loop, UV_RUN_NOWAIT);
    assert_false(nk_reaper_childless(fx.reaper));
    command_release(&c, hold);
    assert_true(nk_reaper_childless(fx.reaper));
}

static void a_failed_start_leaves_us_childless(void **state)
{
    struct command c;

    (void)state;
    command_init(&c, &fx, (const char *const[]){"/nowhere/program", NULL});
    command_start(&c);
    assert_false(nk_reaper_childless(fx.reaper)); /* a start is under way */
    command_wait(&c);
    turn_until_childless();
}

static void an_orphan_keeps_us_from_being_childless_and_is_reaped(void **state)
{
    const char *const argv[] = {"/bin/sh", "-c", "exec 3<&0; (cat <&3 >/dev/null &)", NULL};
    struct command c;
    int ends[2];
    uint64_t before = nk_reaper_count(fx.reaper);

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    command_init(&c, &fx, argv);
    (void)close(c.spawn.stdio[0]);
    c.spawn.stdio[0] = ends[0];
    command_start(&c);
    command_wait(&c);
    assert_false(nk_reaper_childless(fx.reaper));
    (void)close(ends[1]);
    turn_until_childless();
    assert_true(nk_reaper_count(fx.reaper) >= before + 2);
}

static void without_orphans_coming_to_us_we_are_never_childless(void **state)
{
    struct fixture plain;
    struct command c;

    (void)state;
    fixture_open(&plain, (struct fixture_options){0});
    assert_false(nk_reaper_childless(plain.reaper));
    command_run(&c, &plain, "exit 4");
    assert_int_equal(WEXITSTATUS(c.status), 4);
    assert_false(nk_reaper_childless(plain.reaper));
    fixture_close(&plain);
}

/* They all end at once: more of them than one pass takes. */
static void hundreds_of_orphans_that_end_together_are_all_reaped(void **state)
{
    const char *script =
        "exec 3<&0; i=0; while [ $i -lt 600 ]; do (read x <&3 &); i=$((i+1)); done";
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct command c;
    uint64_t before;
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    command_init(&c, &fx, argv);
    (void)close(c.spawn.stdio[0]);
    c.spawn.stdio[0] = ends[0];
    command_start(&c);
    command_wait_told(&c);
    while (!c.reaped && !fx.expired)
        (void)uv_run(&fx.loop, UV_RUN_ONCE);
    before = nk_reaper_count(fx.reaper);
    (void)close(ends[1]);
    turn_until_childless();
    command_collect(&c);
    assert_int_equal(nk_reaper_count(fx.reaper), before + 600);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static unsigned passes;

static void on_pass(void *ctx)
{
    assert_ptr_equal(ctx, &passes);
    passes++;
}

static void watchers_of_trees_hear_of_every_pass(void **state)
{
    struct command c;

    (void)state;
    passes = 0;
    nk_reaper_on_pass(fx.reaper, on_pass, &passes);
    command_run(&c, &fx, "exit 0");
    nk_reaper_on_pass(fx.reaper, NULL, NULL);
    assert_true(passes >= 1);
}

static void a_forgotten_watch_is_not_called(void **state)
{
    struct command c;
    int hold = command_hold(&c, &fx);

    (void)state;
    nk_reaper_forget(fx.reaper, &c.watch);
    nk_reaper_forget(fx.reaper, &c.watch);
    (void)close(hold);
    turn_until_childless();
    assert_int_equal(c.reaped, 0);
    command_collect(&c);
}

/* The end of the child comes to the reaper before its owner has heard of the start. */
static void an_end_before_the_start_is_told_is_kept_for_its_owner(void **state)
{
    struct command c;

    (void)state;
    command_init(&c, &fx, (const char *const[]){"/bin/sh", "-c", "exit 9", NULL});
    command_start(&c);   /* on the loop: `done` waits for the loop's next turn */
    command_collect(&c); /* until the child has closed its output */
    while (waitid(P_PID, (id_t)c.spawn.start.pid, &(siginfo_t){0}, WEXITED | WNOWAIT) < 0)
        assert_int_equal(errno, EINTR);
    assert_int_equal(c.told, 0);
    while (!c.reaped && !fx.expired)
        (void)uv_run(&fx.loop, UV_RUN_ONCE);
    assert_int_equal(c.told, 1);
    assert_int_equal(c.reaped, 1);
    assert_int_equal(WEXITSTATUS(c.status), 9);
}

static void an_ignored_sigchld_is_set_right(void **state)
{
    struct fixture f;
    struct command c;

    (void)state;
    (void)signal(SIGCHLD, SIG_IGN); /* as a parent may leave it to us */
    fixture_open(&f, (struct fixture_options){0});
    command_run(&c, &f, "exit 6");
    assert_int_equal(WEXITSTATUS(c.status), 6);
    fixture_close(&f);
}

static int child_of_probe(void *arg)
{
    return *(int *)arg;
}

static void a_probes_child_is_no_part_of_a_pass(void **state)
{
    uint64_t before = nk_reaper_count(fx.reaper);
    int want = 42;

    (void)state;
    assert_int_equal(nk_spawn_probe(child_of_probe, &want), 42);
    (void)uv_run(&fx.loop, UV_RUN_NOWAIT);
    assert_int_equal(nk_reaper_count(fx.reaper), before);
    assert_true(nk_reaper_childless(fx.reaper));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(childless_is_told_exactly_while_nothing_is_alive),
        cmocka_unit_test(a_failed_start_leaves_us_childless),
        cmocka_unit_test(an_orphan_keeps_us_from_being_childless_and_is_reaped),
        cmocka_unit_test(without_orphans_coming_to_us_we_are_never_childless),
        cmocka_unit_test(hundreds_of_orphans_that_end_together_are_all_reaped),
        cmocka_unit_test(watchers_of_trees_hear_of_every_pass),
        cmocka_unit_test(a_forgotten_watch_is_not_called),
        cmocka_unit_test(an_end_before_the_start_is_told_is_kept_for_its_owner),
        cmocka_unit_test(an_ignored_sigchld_is_set_right),
        cmocka_unit_test(a_probes_child_is_no_part_of_a_pass),
    };

    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
