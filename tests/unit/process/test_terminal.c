#include "spawn_fixture.h"

#include <sys/ioctl.h>
#include <sys/resource.h>

#include "base/attr.h"
#include "base/job.h"
#include "process/live.h"
#include "process/registry.h"

struct room {
    struct fixture fx;
    struct nk_jobs *jobs;
    struct nk_registry *registry;
    struct nk_user user;
    struct nk_watcher watcher;
    unsigned seen[NK_PROC_EV_EXITED + 1];
    uv_timer_t beat; /* else a turn that a timer ended would go on waiting */
    bool inside;     /* a call that must not tell anybody */
};

static void on_event(struct nk_watcher *w, enum nk_proc_event ev, const struct nk_err *err)
{
    struct room *room = NK_CONTAINER_OF(w, struct room, watcher);

    (void)err;
    assert_false(room->inside);
    room->seen[ev]++;
}

static void on_beat(uv_timer_t *timer)
{
    (void)timer;
}

static void room_open(struct room *room, uint32_t without)
{
    const struct nk_creds nobody = {.uid = 54321, .gid = 54321};
    struct nk_registry_config cfg = {
        .loop = &room->fx.loop, .max_commands = 8, .log_total = 1 << 20};

    memset(room, 0, sizeof *room);
    fixture_open(&room->fx, (struct fixture_options){.adopt = true});
    nk_probe_quick(&room->fx.kernel, without);
    nk_probe_slow(&room->fx.kernel, without, &nobody);
    (void)uv_timer_init(&room->fx.loop, &room->beat);
    (void)uv_timer_start(&room->beat, on_beat, 5, 5);
    assert_int_equal(nk_jobs_new(&room->fx.loop, &room->jobs), 0);
    cfg.jobs = room->jobs;
    cfg.spawner = room->fx.spawner;
    cfg.reaper = room->fx.reaper;
    cfg.kernel = &room->fx.kernel;
    assert_int_equal(nk_registry_open(&cfg, &room->registry), 0);
    room->user.creds = (struct nk_creds){.uid = geteuid(), .gid = getegid()};
    room->watcher.on_event = on_event;
}

static void on_ended(void *ctx)
{
    *(bool *)ctx = true;
}

static void room_close(struct room *room)
{
    bool ended = false;

    nk_watcher_detach(&room->watcher);
    nk_registry_end_all(room->registry, NK_REASON_SHUTDOWN, 0, on_ended, &ended);
    while (!ended && !room->fx.expired)
        (void)uv_run(&room->fx.loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&room->beat, NULL);
    nk_registry_close(&room->registry);
    fixture_close(&room->fx);
    nk_jobs_free(room->jobs);
}

static void wait_for(struct room *room, enum nk_proc_event ev)
{
    while (!room->seen[ev] && !room->fx.expired)
        (void)uv_run(&room->fx.loop, UV_RUN_ONCE);
    assert_int_equal(room->seen[ev], 1);
}

static int begin(struct room *room, const char *script, bool tty, struct nk_process **out,
                 struct nk_err *err)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    const struct nk_command cmd = {
        .argv = argv,
        .cwd = "/",
        .envp = fixture_env,
        .user = &room->user,
        .stdin_open = true,
        .tty = tty,
        .cols = 80,
        .rows = 24,
        .log_bytes = 4096,
    };

    return nk_process_start(room->registry, &cmd, &room->watcher, out, err);
}

static struct nk_process *run(struct room *room, const char *script, bool tty)
{
    struct nk_process *p;
    struct nk_err err;

    assert_int_equal(begin(room, script, tty, &p, &err), 0);
    wait_for(room, NK_PROC_EV_STARTED);
    return p;
}

/* Until its log, which has not gone round yet, holds this text. */
static void wait_text(struct room *room, const struct nk_process *p, const char *text)
{
    while (!room->fx.expired) {
        if (memmem(p->log.data, (size_t)p->log.end, text, strlen(text)))
            return;
        (void)uv_run(&room->fx.loop, UV_RUN_ONCE);
    }
    fail_msg("it did not print %s", text);
}

static void a_new_size_is_told_once_and_from_the_loop(void **state)
{
    struct room room;
    struct nk_process *p;
    struct winsize size;
    struct nk_err err;

    (void)state;
    room_open(&room, 0);
    p = run(&room, "sleep 1000", true);
    room.inside = true;
    assert_int_equal(nk_process_resize(p, 1, 1, &err), 0);
    assert_int_equal(nk_process_resize(p, 65535, 43, &err), 0);
    room.inside = false;
    assert_int_equal(p->cols, 65535);
    assert_int_equal(p->rows, 43);
    assert_int_equal(ioctl(p->live->out[0].fd, TIOCGWINSZ, &size), 0);
    assert_int_equal(size.ws_col, 65535);
    assert_int_equal(size.ws_row, 43);
    wait_for(&room, NK_PROC_EV_RESIZED);
    room_close(&room);
}

static void what_is_no_size_changes_nothing(void **state)
{
    static const unsigned wrong[][2] = {{0, 24}, {80, 0}, {65536, 24}, {80, 65536}};
    struct room room;
    struct nk_process *p;
    struct nk_err err;

    (void)state;
    room_open(&room, 0);
    p = run(&room, "echo one; read x", true);
    for (size_t i = 0; i < NK_COUNT(wrong); i++) {
        assert_int_equal(nk_process_resize(p, wrong[i][0], wrong[i][1], &err), -1);
        assert_int_equal(err.code, NK_BAD_REQUEST);
    }
    wait_text(&room, p, "one\r\n");
    assert_int_equal(room.seen[NK_PROC_EV_RESIZED], 0);
    assert_int_equal(p->cols, 80);
    assert_int_equal(p->rows, 24);
    room_close(&room);
}

static void only_a_terminal_that_is_open_has_a_size(void **state)
{
    struct room room;
    struct nk_process *p;
    struct nk_err err;

    (void)state;
    room_open(&room, 0);
    p = run(&room, "read x", false);
    assert_int_equal(nk_process_resize(p, 80, 24, &err), -1);
    assert_int_equal(err.code, NK_CONFLICT);
    room_close(&room);
    room_open(&room, 0);
    p = run(&room, "exit 3", true);
    wait_for(&room, NK_PROC_EV_EXITED);
    assert_int_equal(nk_process_exit_code(p), 3);
    assert_int_equal(nk_process_resize(p, 80, 24, &err), -1);
    assert_int_equal(err.code, NK_CONFLICT);
    room_close(&room);
}

static void a_signal_reaches_who_is_in_front(void **state)
{
    struct room room;
    struct nk_process *p;

    (void)state;
    room_open(&room, 0);
    p = run(&room,
            "set -m; trap 'echo leader' USR1; "
            "sh -c 'trap \"echo front; exit\" USR1; echo ready; while :; do sleep 0.02; done'; "
            "echo back; exit 5",
            true);
    wait_text(&room, p, "ready\r\n");
    assert_int_equal(nk_process_signal_foreground(p, SIGUSR1), 0);
    wait_for(&room, NK_PROC_EV_EXITED);
    assert_int_equal(nk_process_exit_code(p), 5);
    wait_text(&room, p, "front\r\nback\r\n");
    assert_null(memmem(p->log.data, (size_t)p->log.end, "leader", 6));
    room_close(&room);
}

static void without_a_terminal_it_reaches_the_commands_group(void **state)
{
    struct room room;
    struct nk_process *p;

    (void)state;
    room_open(&room, 0);
    p = run(&room, "sleep 1000; echo not reached", false);
    assert_int_equal(nk_process_signal_foreground(p, SIGTERM), 0);
    wait_for(&room, NK_PROC_EV_EXITED);
    assert_string_equal(nk_process_signal_name(p), "TERM");
    assert_int_equal(p->reason, NK_REASON_SIGNALED);
    assert_int_equal(nk_process_signal_foreground(p, SIGTERM), -ESRCH);
    room_close(&room);
}

static void one_that_is_stopped_can_act_on_it(void **state)
{
    struct room room;
    struct nk_process *p;

    (void)state;
    room_open(&room, 0);
    p = run(&room, "echo ready; kill -STOP $$; sleep 1000", true);
    wait_text(&room, p, "ready\r\n");
    assert_int_equal(nk_process_signal_foreground(p, SIGHUP), 0);
    wait_for(&room, NK_PROC_EV_EXITED);
    assert_string_equal(nk_process_signal_name(p), "HUP");
    room_close(&room);
}

static void to_kill_the_leader_is_a_kill(void **state)
{
    struct room room;
    struct nk_process *p;

    (void)state;
    room_open(&room, 0);
    p = run(&room, "sleep 1000", true);
    assert_int_equal(nk_process_signal_foreground(p, SIGKILL), 0);
    wait_for(&room, NK_PROC_EV_EXITED);
    assert_int_equal(p->reason, NK_REASON_KILLED);
    assert_true(p->killed);
    room_close(&room);
}

static void what_was_not_started_yet_gets_no_signal(void **state)
{
    struct room room;
    struct nk_process *p;
    struct nk_err err;

    (void)state;
    room_open(&room, 0);
    assert_int_equal(begin(&room, "exit 0", true, &p, &err), 0);
    assert_int_equal(nk_process_signal_foreground(p, SIGKILL), -ESRCH);
    wait_for(&room, NK_PROC_EV_EXITED);
    assert_int_equal(nk_process_exit_code(p), 0);
    room_close(&room);
}

static void where_there_are_none_the_start_says_so(void **state)
{
    struct room room;
    struct nk_process *p;
    struct nk_err err;

    (void)state;
    room_open(&room, 1u << NK_MECH_TERMINAL);
    assert_int_equal(begin(&room, "exit 0", true, &p, &err), -1);
    assert_int_equal(err.code, NK_NOT_SUPPORTED);
    (void)run(&room, "exit 0", false);
    room_close(&room);
}

/* No descriptor left at each step of the start: refused, and nothing stays open. */
static void without_descriptors_nothing_is_started(void **state)
{
    struct room room;
    struct rlimit before, lim;
    struct nk_process *p;
    struct nk_err err;
    int next;

    (void)state;
    room_open(&room, 0);
    next = dup(STDIN_FILENO);
    (void)close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    lim = before;
    for (int room_for = 0; room_for < 4; room_for++) {
        lim.rlim_cur = (rlim_t)(next + room_for);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &lim), 0);
        assert_int_equal(begin(&room, "exit 0", true, &p, &err), -1);
        assert_int_equal(err.code, NK_OVERLOADED);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    (void)uv_run(&room.fx.loop, UV_RUN_NOWAIT);
    assert_int_equal(dup(STDIN_FILENO), next);
    (void)close(next);
    (void)run(&room, "exit 0", true);
    room_close(&room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_size_is_told_once_and_from_the_loop),
        cmocka_unit_test(what_is_no_size_changes_nothing),
        cmocka_unit_test(only_a_terminal_that_is_open_has_a_size),
        cmocka_unit_test(a_signal_reaches_who_is_in_front),
        cmocka_unit_test(without_a_terminal_it_reaches_the_commands_group),
        cmocka_unit_test(one_that_is_stopped_can_act_on_it),
        cmocka_unit_test(to_kill_the_leader_is_a_kill),
        cmocka_unit_test(what_was_not_started_yet_gets_no_signal),
        cmocka_unit_test(where_there_are_none_the_start_says_so),
        cmocka_unit_test(without_descriptors_nothing_is_started),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
