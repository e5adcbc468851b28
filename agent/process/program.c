#include "process/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/scope.h"
#include "process/tree.h"

#define LOOK_MS 10   /* between two looks at what is left */
#define KILL_MS 2000 /* of one job that kills */
#define HUNT_MS 6000 /* after KILL; what then still lives cannot be killed by us */
#define SWEEP_MS 2000
#define NOT_EXECUTED 126
#define NOT_FOUND 127

struct nk_program {
    struct nk_program_config cfg;
    struct nk_spawn spawn;
    struct nk_reaper_watch watch;
    pid_t pid;      /* 0: not running (any more) */
    pid_t group;    /* 0: nobody is in it (any more) */
    uint64_t early; /* bit N - 1: signals that came before it ran */
    bool reaped, ending, killing, over;
    bool swept;        /* what it left behind was asked to end */
    bool group_termed; /* the group was */
    bool term_waits;   /* the rest of the tree is to be */
    bool clear;        /* the last look found nobody */
    uv_timer_t grace, look;
    struct nk_job job;
    struct nk_tree tree; /* the job's own */
    int signo;           /* of the job; 0: only counts */
    int found;           /* by the job */
    bool busy;
    unsigned open_handles;
    bool closing;
};

static bool group_lives(struct nk_program *p)
{
    if (p->group != 0 && kill(-p->group, 0) < 0 && errno == ESRCH)
        p->group = 0; /* from now on the number may be somebody else's */
    return p->group != 0;
}

static void send_to_group(struct nk_program *p, int signo)
{
    if (group_lives(p))
        (void)kill(-p->group, signo);
}

static void send_to_main(struct nk_program *p, int signo)
{
    if (p->pid != 0)
        (void)kill(p->pid, signo);
}

static void send_signal(struct nk_program *p, int signo)
{
    if (p->cfg.alone)
        send_to_main(p, signo);
    else
        send_to_group(p, signo);
}

void nk_program_signal(struct nk_program *p, int signo)
{
    if (p->pid == 0 && !p->reaped)
        p->early |= UINT64_C(1) << (signo - 1);
    else
        send_signal(p, signo);
}

static void on_look(uv_timer_t *timer);

static void step_in(struct nk_program *p, unsigned ms)
{
    if (p->ending && !p->over)
        (void)uv_timer_start(&p->look, on_look, ms, 0);
}

static void work(struct nk_job *job)
{
    struct nk_program *p = NK_CONTAINER_OF(job, struct nk_program, job);

    if (p->signo == SIGKILL) {
        p->found = nk_tree_kill(&p->tree, KILL_MS) == -ETIMEDOUT;
        return;
    }
    p->found = nk_tree_signal(&p->tree, p->signo);
    if (p->signo == SIGTERM) /* so that a stopped one can act */
        (void)nk_tree_signal(&p->tree, SIGCONT);
}

/* Where orphans go to somebody else, one who is dead and not yet reaped there is still in the group
 * for who asks by its number. */
static bool judges_by_looks(const struct nk_program *p)
{
    return p->cfg.mark != 0 && !nk_reaper_adopts(p->cfg.reaper);
}

static void on_done(struct nk_job *job, bool canceled)
{
    struct nk_program *p = NK_CONTAINER_OF(job, struct nk_program, job);

    (void)canceled;
    p->busy = false;
    p->clear = p->found <= 0 && !(judges_by_looks(p) && p->signo == SIGTERM);
    if (p->closing && p->open_handles == 0)
        free(p);
    else if (!p->closing)
        step_in(p, p->clear ? 0 : LOOK_MS);
}

/* Members of the group were signalled by its number; but who has to count, or kill, counts all. */
static bool asks_group(const struct nk_program *p, int signo)
{
    return signo == SIGKILL || (signo == 0 && judges_by_looks(p));
}

static void look(struct nk_program *p, int signo)
{
    p->busy = true;
    p->signo = signo;
    p->found = 0;
    p->tree = (struct nk_tree){.mark = p->cfg.mark,
                               .leader = p->pid,
                               .pidfd = p->cfg.pidfd,
                               .but = asks_group(p, signo) ? 0 : p->group};
    p->job = (struct nk_job){.work = work, .done = on_done, .urgent = true};
    nk_job_submit(p->cfg.jobs, &p->job);
}

/* Its mark tells who belongs to it; without one its descent does, as long as it lives. */
static bool can_look(const struct nk_program *p)
{
    return !p->cfg.leave && (p->cfg.mark != 0 || p->pid != 0);
}

static bool is_gone(struct nk_program *p)
{
    if (!p->reaped)
        return false;
    if (p->cfg.leave)
        return true;
    return judges_by_looks(p) ? p->clear : !group_lives(p) && (!can_look(p) || p->clear);
}

static void finish(struct nk_program *p)
{
    p->over = true;
    (void)uv_timer_stop(&p->grace);
    (void)uv_timer_stop(&p->look);
    p->cfg.on_over(p->cfg.ctx);
}

/* What it left behind is asked to end; who was in the group at TERM was asked then. */
static void sweep(struct nk_program *p)
{
    p->swept = true;
    p->clear = false;
    p->term_waits = true;
    if (!p->cfg.leave && !p->group_termed) {
        p->group_termed = true;
        send_to_group(p, SIGTERM);
        send_to_group(p, SIGCONT);
    }
}

static void kill_members(struct nk_program *p)
{
    if (p->cfg.leave)
        send_signal(p, SIGKILL);
    else
        send_to_group(p, SIGKILL);
}

static void step(struct nk_program *p)
{
    bool asks = p->term_waits;

    if (p->reaped && !p->swept)
        sweep(p);
    if (p->killing)
        kill_members(p);
    if (is_gone(p)) {
        finish(p);
        return;
    }
    if (!asks && !p->reaped && !p->killing)
        return; /* its end comes back here */
    p->term_waits = false;
    if (!can_look(p))
        step_in(p, LOOK_MS);
    else if (p->killing)
        look(p, SIGKILL);
    else
        look(p, asks ? SIGTERM : 0);
}

static void on_look(uv_timer_t *timer)
{
    struct nk_program *p = timer->data;

    if (!p->busy)
        step(p);
}

static void tell_exit(struct nk_program *p, int status)
{
    p->reaped = true;
    p->pid = 0;
    step_in(p, 0);
    p->cfg.on_exit(p->cfg.ctx, status);
}

static void on_hunt_over(uv_timer_t *timer)
{
    struct nk_program *p = timer->data;

    if (!p->reaped) {
        nk_reaper_forget(p->cfg.reaper, &p->watch);
        tell_exit(p, 128 + SIGKILL);
    }
    finish(p);
}

static void on_grace_over(uv_timer_t *timer)
{
    struct nk_program *p = timer->data;

    p->killing = true;
    step_in(p, 0);
    (void)uv_timer_start(timer, on_hunt_over, HUNT_MS, 0);
}

void nk_program_end(struct nk_program *p, int signo, unsigned grace_ms)
{
    uv_update_time(p->cfg.loop);
    if (!p->ending) {
        p->ending = true;
        if (!p->reaped) {
            nk_program_signal(p, signo);
            nk_program_signal(p, SIGCONT);
            p->group_termed = !p->cfg.alone;
            p->term_waits = !p->cfg.alone && !p->cfg.leave;
        }
    } else if (p->killing || uv_timer_get_due_in(&p->grace) <= grace_ms) {
        return;
    }
    (void)uv_timer_start(&p->grace, on_grace_over, grace_ms, 0);
    step_in(p, 0);
}

/* The terminal comes back to us: what we still have to say may be said. */
static void take_terminal(const struct nk_program *p)
{
    if (p->cfg.heritage->foreground)
        (void)tcsetpgrp(STDIN_FILENO, getpgrp());
}

static void on_reaped(struct nk_reaper_watch *w, int wait_status, const struct rusage *usage)
{
    struct nk_program *p = NK_CONTAINER_OF(w, struct nk_program, watch);

    (void)usage;
    take_terminal(p);
    tell_exit(p, WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status));
}

static void send_early(struct nk_program *p)
{
    for (int signo = 1; signo <= 64; signo++)
        if (p->early & UINT64_C(1) << (signo - 1))
            send_signal(p, signo);
}

static void on_started(struct nk_spawn *s, pid_t pid, const struct nk_err *err)
{
    struct nk_program *p = NK_CONTAINER_OF(s, struct nk_program, spawn);

    if (err) {
        take_terminal(p);
        nk_log_msg(NK_LOG_ERROR, "program", "%s", err->msg);
        tell_exit(p, err->sys == ENOENT || err->sys == ENOTDIR ? NOT_FOUND : NOT_EXECUTED);
        return;
    }
    p->pid = p->group = pid;
    p->watch = (struct nk_reaper_watch){.pid = pid, .fn = on_reaped};
    nk_reaper_watch(p->cfg.reaper, &p->watch);
    send_early(p);
}

static int fill_spawn(struct nk_program *p)
{
    const struct nk_program_config *cfg = &p->cfg;
    struct nk_spawn *s = &p->spawn;

    *s = (struct nk_spawn){.argv = cfg->argv,
                           .envp = cfg->envp,
                           .cwd = cfg->cwd,
                           .creds = cfg->creds,
                           .switch_user = cfg->switch_user,
                           .oom_score_adj = -1,
                           .limits.nofile_soft = cfg->heritage->nofile,
                           .heritage = cfg->heritage,
                           .stdio = {-1, -1, -1},
                           .done = on_started};
    if (cfg->mark && s->creds.group_count < NK_CREDS_GROUPS)
        s->creds.groups[s->creds.group_count++] = cfg->mark;
    for (int fd = 0; fd < 3; fd++) {
        s->stdio[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (s->stdio[fd] < 0)
            return -errno;
    }
    return 0;
}

int nk_program_open(const struct nk_program_config *cfg, struct nk_program **out)
{
    struct nk_program *p = calloc(1, sizeof *p);
    int rc;

    if (!p)
        return -ENOMEM;
    p->cfg = *cfg;
    rc = fill_spawn(p);
    if (rc < 0) {
        for (int fd = 0; fd < 3; fd++)
            nk_close_fd(&p->spawn.stdio[fd]);
        free(p);
        return rc;
    }
    (void)uv_timer_init(cfg->loop, &p->grace);
    (void)uv_timer_init(cfg->loop, &p->look);
    p->grace.data = p->look.data = p;
    p->open_handles = 2;
    nk_spawn_start(cfg->spawner, &p->spawn);
    *out = p;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct nk_program *p = handle->data;

    if (--p->open_handles == 0 && !p->busy)
        free(p);
}

void nk_program_close(struct nk_program **slot)
{
    struct nk_program *p = *slot;

    if (!p)
        return;
    *slot = NULL;
    p->closing = true;
    if (p->pid != 0)
        nk_reaper_forget(p->cfg.reaper, &p->watch);
    uv_close((uv_handle_t *)&p->grace, on_closed);
    uv_close((uv_handle_t *)&p->look, on_closed);
}

void nk_program_sweep(void)
{
    const struct nk_tree all = {.leader = getpid()};

    (void)nk_tree_kill(&all, SWEEP_MS);
}
