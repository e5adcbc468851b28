/*
 * A loop with a reaper and a spawner, and commands whose output and status are collected: shared by
 * the tests of starting and reaping. Real children of /bin/sh; every wait has a deadline.
 */
#ifndef NK_TESTS_SPAWN_FIXTURE_H
#define NK_TESTS_SPAWN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "process/confine.h"
#include "process/probe.h"
#include "process/reaper.h"
#include "process/spawn.h"

#define FIXTURE_DEADLINE_MS 20000

struct fixture {
    uv_loop_t loop;
    uv_timer_t deadline;
    bool expired;
    struct nk_kernel kernel;
    struct nk_filter filter;
    struct nk_reaper *reaper;
    struct nk_spawner *spawner;
    int adopted; /* whether we were a subreaper before */
};

struct command {
    struct nk_spawn spawn;
    struct nk_reaper_watch watch;
    struct fixture *fx;
    int out; /* what it wrote; -1: not collected */
    pid_t pid;
    struct nk_err err;
    int status;
    unsigned told, reaped;
    bool inside; /* nk_spawn_start has not returned */
    void (*on_end)(struct command *c);
    char text[8192];
};

struct fixture_options {
    bool adopt; /* become a subreaper: starts on the loop are possible */
    bool no_filter;
    bool loop_confined; /* the calling thread takes the filter, for good */
    bool no_close_range;
    unsigned deadline_ms;
};

static inline void on_fixture_deadline(uv_timer_t *t)
{
    ((struct fixture *)t->data)->expired = true;
}

static inline void fixture_open(struct fixture *fx, struct fixture_options o)
{
    struct nk_spawner_config cfg = {.loop = &fx->loop, .kernel = &fx->kernel};

    memset(fx, 0, sizeof *fx);
    (void)prctl(PR_GET_CHILD_SUBREAPER, &fx->adopted);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 0L);
    assert_int_equal(uv_loop_init(&fx->loop), 0);
    (void)uv_timer_init(&fx->loop, &fx->deadline);
    fx->deadline.data = fx;
    (void)uv_timer_start(&fx->deadline, on_fixture_deadline, FIXTURE_DEADLINE_MS, 0);
    nk_probe_quick(&fx->kernel, o.no_close_range ? 1u << NK_MECH_CLOSE_RANGE : 0);
    assert_int_equal(nk_confine_compile(&fx->filter, NULL), 0);
    assert_int_equal(nk_reaper_open(&fx->loop, &fx->reaper), 0);
    if (o.adopt)
        assert_int_equal(nk_reaper_adopt(fx->reaper), 0);
    cfg.reaper = fx->reaper;
    cfg.filter = o.no_filter ? NULL : &fx->filter;
    cfg.deadline_ms = o.deadline_ms;
    cfg.loop_confined = o.loop_confined;
    if (o.loop_confined)
        assert_int_equal(nk_confine_apply(&fx->filter), 0);
    assert_int_equal(nk_spawner_open(&cfg, &fx->spawner), 0);
}

static inline void fixture_close(struct fixture *fx)
{
    nk_spawner_close(&fx->spawner);
    nk_reaper_close(&fx->reaper);
    uv_close((uv_handle_t *)&fx->deadline, NULL);
    (void)uv_run(&fx->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fx->loop), 0);
    nk_confine_fini(&fx->filter);
    (void)prctl(PR_SET_CHILD_SUBREAPER, (long)fx->adopted);
}

static inline void on_command_reaped(struct nk_reaper_watch *w, int status,
                                     const struct rusage *usage)
{
    struct command *c = NK_CONTAINER_OF(w, struct command, watch);

    (void)usage;
    c->status = status;
    c->reaped++;
    if (c->on_end)
        c->on_end(c);
}

static inline void on_command_started(struct nk_spawn *s, pid_t pid, const struct nk_err *err)
{
    struct command *c = NK_CONTAINER_OF(s, struct command, spawn);

    assert_false(c->inside);
    c->told++;
    c->pid = pid;
    if (err) {
        c->err = *err;
        if (c->on_end)
            c->on_end(c);
        return;
    }
    c->watch = (struct nk_reaper_watch){.pid = pid, .fn = on_command_reaped};
    nk_reaper_watch(c->fx->reaper, &c->watch);
}

static const char *const fixture_env[] = {"PATH=/usr/bin:/bin", NULL};

/* Own ids, /dev/null as input, output collected; to be changed before command_start. */
static inline void command_init(struct command *c, struct fixture *fx, const char *const *argv)
{
    int ends[2];

    memset(c, 0, sizeof *c);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    c->fx = fx;
    c->out = ends[0];
    c->spawn.argv = argv;
    c->spawn.envp = fixture_env;
    c->spawn.cwd = "/";
    c->spawn.stdio[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    c->spawn.stdio[1] = ends[1];
    c->spawn.stdio[2] = open("/dev/null", O_WRONLY | O_CLOEXEC);
    c->spawn.done = on_command_started;
}

static inline void command_start(struct command *c)
{
    c->inside = true;
    nk_spawn_start(c->fx->spawner, &c->spawn);
    c->inside = false;
}

static inline void command_wait_told(struct command *c)
{
    while (!c->told && !c->fx->expired)
        (void)uv_run(&c->fx->loop, UV_RUN_ONCE);
    assert_int_equal(c->told, 1);
}

static inline void command_collect(struct command *c)
{
    size_t n = 0;
    ssize_t got;

    while (n < sizeof c->text - 1 && (got = read(c->out, c->text + n, sizeof c->text - 1 - n)) > 0)
        n += (size_t)got;
    c->text[n] = '\0';
    (void)close(c->out);
    c->out = -1;
}

/* Until it is over; for output that fits into a pipe. */
static inline void command_wait(struct command *c)
{
    command_wait_told(c);
    while (!c->err.code && !c->reaped && !c->fx->expired)
        (void)uv_run(&c->fx->loop, UV_RUN_ONCE);
    assert_int_equal(c->reaped, c->err.code ? 0 : 1);
    command_collect(c);
}

static inline void command_run(struct command *c, struct fixture *fx, const char *script)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};

    command_init(c, fx, argv);
    command_start(c);
    command_wait(c);
}

/* A child that lives until the returned descriptor is closed; while it lives, threads start. */
static inline int command_hold_scored(struct command *c, struct fixture *fx, int oom_score_adj)
{
    static const char *const argv[] = {"/bin/cat", NULL};
    int ends[2];

    command_init(c, fx, argv);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void)close(c->spawn.stdio[0]);
    c->spawn.stdio[0] = ends[0];
    c->spawn.oom_score_adj = oom_score_adj;
    command_start(c);
    command_wait_told(c);
    return ends[1];
}

static inline int command_hold(struct command *c, struct fixture *fx)
{
    return command_hold_scored(c, fx, 0);
}

static inline void command_release(struct command *c, int held)
{
    (void)close(held);
    command_wait(c);
}

static inline void assert_not_started(const struct command *c, const char *stage, int sys)
{
    assert_int_equal(c->told, 1);
    assert_int_equal(c->err.code, NK_EXEC_FAILED);
    assert_string_equal(c->err.stage, stage);
    assert_int_equal(c->err.sys, sys);
    assert_true(c->pid <= 0);
    assert_string_equal(c->text, "");
}

#endif
