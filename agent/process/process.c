#include "process/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "process/grouping.h"
#include "process/hosted.h"
#include "process/live.h"
#include "process/registry.h"
#include "process/signals.h"
#include "process/terminal.h"

void nk_process_ref(struct nk_process *p)
{
    p->refs++;
}

static void drop_captures(struct nk_process *p)
{
    if (!p->captures)
        return;
    nk_capture_fini(&p->captures[0]);
    nk_capture_fini(&p->captures[1]);
    free(p->captures);
    p->captures = NULL;
}

void nk_process_drop_results(struct nk_process *p)
{
    drop_captures(p);
    if (p->after)
        p->after->trim(p->after, false);
    nk_registry_recount(p);
}

void nk_process_unref(struct nk_process *p)
{
    if (--p->refs > 0)
        return;
    drop_captures(p);
    nk_outlog_fini(&p->log);
    if (p->after)
        p->after->release(p->after);
    free(p->name);
    free(p->argv);
    free(p->cwd);
    free(p);
}

static void note_end(struct nk_process *p, enum nk_reason why)
{
    if (p->ended_by_us)
        return;
    p->ended_by_us = true;
    p->reason = why;
    p->killed = why == NK_REASON_KILLED;
}

/* What a hosted one ran in was asked at its own end. */
static bool of_memory(struct nk_process *p)
{
    if (!p->hosted)
        return nk_grouping_oom(p);
    return p->carrier && p->carrier->over && p->carrier->reason == NK_REASON_OOM;
}

static void set_reason(struct nk_process *p)
{
    bool signaled = WIFSIGNALED(p->wait_status);

    if (!p->ended_by_us && signaled && WTERMSIG(p->wait_status) == p->asked_signal)
        note_end(p, NK_REASON_KILLED); /* it died of what a client sent */
    if (!p->ended_by_us)
        p->reason = signaled ? NK_REASON_SIGNALED : NK_REASON_EXITED;
    if (!p->ended_by_us && nk_process_exit_code(p) == 128 + SIGKILL && of_memory(p))
        p->reason = NK_REASON_OOM;
    p->timed_out = p->reason == NK_REASON_TIMEOUT;
}

void nk_process_step(struct nk_process *p)
{
    struct nk_live *l = p->live;

    if (p->over || p->state != NK_PROC_RUNNING || !p->reaped)
        return;
    if ((l->out[0].fd >= 0 || l->out[1].fd >= 0) && !p->drained)
        return;
    p->over = true;
    p->ended_wall_ms = nk_clock_wall_ms();
    p->ended_ns = nk_clock_mono_ns();
    p->end_offset = p->log.end;
    set_reason(p);
    (void)uv_timer_stop(&l->quiet);
    nk_input_close(&l->in);
    if (p->after)
        p->after->ended(p->after, p);
    else
        nk_process_announce(p);
}

void nk_process_announce(struct nk_process *p)
{
    p->state = NK_PROC_EXITED;
    nk_process_ref(p);
    nk_registry_ended(p);
    nk_process_emit(p, NK_PROC_EV_EXITED, NULL);
    if (p->holds == 0)
        nk_process_drop_results(p);
    if (p->live)
        nk_live_settle(p->live);
    nk_process_unref(p);
}

static void on_reaped(struct nk_reaper_watch *w, int wait_status, const struct rusage *usage)
{
    struct nk_live *l = NK_CONTAINER_OF(w, struct nk_live, watch);
    struct nk_process *p = l->process;

    (void)usage;
    p->reaped = true;
    p->wait_status = wait_status;
    (void)uv_timer_stop(&l->timeout);
    nk_process_ref(p);
    nk_terminal_reaped(l);
    nk_output_reaped(l);
    nk_process_step(p);
    nk_process_unref(p);
}

static void on_timeout(uv_timer_t *timer)
{
    struct nk_live *l = timer->data;

    nk_process_end(l->process, NK_REASON_TIMEOUT);
}

void nk_process_arm_timeout(struct nk_live *l, uint64_t ms)
{
    uv_update_time(l->timeout.loop);
    (void)uv_timer_start(&l->timeout, on_timeout, ms, 0);
}

static void start_failed(struct nk_live *l, const struct nk_err *err)
{
    struct nk_process *p = l->process;

    nk_process_ref(p);
    p->state = NK_PROC_EXITED;
    nk_registry_failed(p);
    nk_process_emit(p, NK_PROC_EV_FAILED, err);
    nk_live_abort(l);
    nk_process_unref(p);
}

static void on_spawned(struct nk_spawn *s, pid_t pid, const struct nk_err *err)
{
    struct nk_live *l = NK_CONTAINER_OF(s, struct nk_live, spawn);
    struct nk_process *p = l->process;

    free(l->envp);
    l->envp = NULL;
    if (pid <= 0) {
        start_failed(l, err);
        return;
    }
    p->pid = pid;
    p->state = NK_PROC_RUNNING;
    l->watch = (struct nk_reaper_watch){.pid = pid, .fn = on_reaped};
    nk_reaper_watch(nk_registry_reaper(p->registry), &l->watch);
    nk_output_begin(l);
    nk_input_push(&l->in);
    if (p->timeout_ms > 0)
        nk_process_arm_timeout(l, p->timeout_ms);
    nk_registry_started(p);
    if (l->kill_wanted)
        nk_process_end(p, p->reason);
    nk_process_emit(p, NK_PROC_EV_STARTED, NULL);
}

int nk_process_start(struct nk_registry *r, const struct nk_command *cmd, struct nk_watcher *w,
                     struct nk_process **out, struct nk_err *err)
{
    struct nk_process *p = nk_registry_adopt(r, cmd, err);
    struct nk_live *l;

    if (!p)
        return -1;
    l = nk_live_new(p);
    p->live = l;
    if (!l)
        (void)nk_fail(err, NK_OVERLOADED, "no memory for a command");
    if (!l || nk_launch_prepare(l, cmd, err) < 0)
        goto fail;
    if (nk_live_open(l, nk_registry_loop(r)) < 0) {
        (void)nk_fail(err, NK_OVERLOADED, "no descriptors for a command");
        goto fail;
    }
    p->timeout_ms = cmd->timeout_ms;
    p->started_wall_ms = nk_clock_wall_ms();
    p->started_ns = nk_clock_mono_ns();
    p->after = cmd->after;
    if (w)
        nk_watcher_attach(w, p);
    *out = p;
    if (p->hosted)
        return 0;
    l->spawn.done = on_spawned;
    l->spawn.channel = cmd->channel;
    nk_spawn_start(nk_registry_spawner(r), &l->spawn);
    return 0;

fail:
    p->state = NK_PROC_EXITED;
    nk_process_ref(p);
    nk_registry_failed(p);
    if (l)
        nk_live_abort(l);
    nk_process_unref(p);
    return -1;
}

/* Asked to end while what comes after its end is still done. */
static void hurry(struct nk_process *p, enum nk_reason why)
{
    if (p->state == NK_PROC_RUNNING && why != NK_REASON_KILLED && p->after->hurry)
        p->after->hurry(p->after);
}

static void end_hosted(struct nk_process *p, enum nk_reason why)
{
    if (p->state != NK_PROC_RUNNING || p->reaped)
        return;
    note_end(p, why);
    p->host->end(p->host, p, why);
}

void nk_process_end(struct nk_process *p, enum nk_reason why)
{
    if (p->over && p->after)
        hurry(p, why);
    if (p->over && why == NK_REASON_CLIENT_GONE)
        return; /* its background children live on */
    if (p->state == NK_PROC_STARTING) {
        note_end(p, why);
        p->live->kill_wanted = true;
        return;
    }
    if (p->hosted) {
        end_hosted(p, why);
        return;
    }
    if (p->state == NK_PROC_RUNNING && !p->reaped) {
        note_end(p, why);
        (void)kill(-p->pid, SIGKILL); /* the session leader is not reaped: its group is its own */
    }
    if (p->live && p->live->kill_busy && p->live->kill.signo == SIGKILL)
        return;
    if (p->state == NK_PROC_RUNNING || p->tree || nk_list_linked(&p->suspect))
        (void)nk_tree_job_start(p, SIGKILL);
}

void nk_process_signal(struct nk_process *p, int signo, bool tree)
{
    if (p->state == NK_PROC_EXITED && !p->tree && !nk_list_linked(&p->suspect))
        return;
    if (tree && signo == SIGKILL) {
        nk_process_end(p, NK_REASON_KILLED);
        return;
    }
    p->asked_signal = signo;
    if (p->hosted) {
        if (p->host)
            p->host->signal(p->host, p, signo, tree);
        return;
    }
    if (tree && nk_tree_job_start(p, signo) == 0)
        return;
    if (p->state != NK_PROC_RUNNING || p->reaped)
        return;
    (void)kill(tree ? -p->pid : p->pid, signo);
    if (signo != SIGTERM && signo != SIGHUP)
        return;
    (void)kill(tree ? -p->pid : p->pid, SIGCONT);
    if (nk_registry_is_frozen(p->registry))
        (void)nk_tree_job_start(p, 0);
}

int nk_process_signal_foreground(struct nk_process *p, int signo)
{
    pid_t group;

    if (p->state != NK_PROC_RUNNING || p->reaped)
        return -ESRCH;
    if (p->hosted) {
        nk_process_signal(p, signo, signo == SIGKILL);
        return 0;
    }
    group = nk_terminal_foreground(p->live);
    if (group <= 0 && nk_terminal_is_blind(p->live)) {
        nk_process_signal(p, signo, true);
        return 0;
    }
    if (group <= 0)
        group = p->pid;
    if (signo == SIGKILL && group == p->pid)
        note_end(p, NK_REASON_KILLED);
    if (kill(-group, signo) < 0)
        return -errno;
    if (signo == SIGTERM || signo == SIGHUP)
        (void)kill(-group, SIGCONT);
    return 0;
}

int nk_process_resize(struct nk_process *p, unsigned cols, unsigned rows, struct nk_err *err)
{
    int rc;

    if (cols < 1 || cols > UINT16_MAX || rows < 1 || rows > UINT16_MAX)
        return nk_fail(err, NK_BAD_REQUEST, "cols and rows must be 1 to 65535, not %u and %u", cols,
                       rows);
    if (!p->tty)
        return nk_fail(err, NK_CONFLICT, "process %s has no terminal", p->id);
    if (!p->live || p->live->out[0].fd < 0)
        return nk_fail(err, NK_CONFLICT, "the terminal of process %s is closed", p->id);
    rc = nk_terminal_resize(p->live, cols, rows);
    if (rc < 0)
        return nk_fail_sys(err, -rc, "cannot resize the terminal");
    p->cols = cols;
    p->rows = rows;
    return 0;
}

int nk_process_exit_code(const struct nk_process *p)
{
    if (p->timed_out)
        return 128 + SIGKILL;
    if (WIFSIGNALED(p->wait_status))
        return 128 + WTERMSIG(p->wait_status);
    return WEXITSTATUS(p->wait_status);
}

const char *nk_process_signal_name(const struct nk_process *p)
{
    if (!p->reaped || !WIFSIGNALED(p->wait_status))
        return NULL;
    return nk_signals_name(WTERMSIG(p->wait_status));
}

const char *nk_reason_name(enum nk_reason r)
{
    static const char *const names[] = {
        [NK_REASON_EXITED] = "exited",
        [NK_REASON_SIGNALED] = "signaled",
        [NK_REASON_TIMEOUT] = "timeout",
        [NK_REASON_KILLED] = "killed",
        [NK_REASON_CLIENT_GONE] = "client_gone",
        [NK_REASON_TTL] = "ttl",
        [NK_REASON_IDLE] = "idle",
        [NK_REASON_OOM] = "oom",
        [NK_REASON_SHUTDOWN] = "shutdown",
    };

    return names[r];
}

uint64_t nk_process_duration_ms(const struct nk_process *p)
{
    uint64_t end = p->over ? p->ended_ns : nk_clock_mono_ns();

    return (end - p->started_ns) / 1000000;
}

uint64_t nk_process_stream_end(const struct nk_process *p)
{
    return p->over ? p->end_offset : p->log.end;
}
