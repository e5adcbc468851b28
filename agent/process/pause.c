/* Pause and resume: every tree stopped until two looks agree, and the commands' clocks with them. */
#include <errno.h>
#include <signal.h>

#include "process/registry_private.h"

#define FREEZE_MS 5000

static void stop_clocks(struct nk_registry *r, struct nk_process *p)
{
    struct nk_live *l = p->live;

    (void)r;
    if (!l || p->state != NK_PROC_RUNNING)
        return;
    nk_output_clock(l, false);
    if (!uv_is_active((uv_handle_t *)&l->timeout))
        return;
    l->timeout_left_ms = uv_timer_get_due_in(&l->timeout);
    l->timeout_left_ms += l->timeout_left_ms == 0;
    (void)uv_timer_stop(&l->timeout);
}

static void start_clocks(struct nk_registry *r, struct nk_process *p)
{
    struct nk_live *l = p->live;

    (void)r;
    if (!l || p->state != NK_PROC_RUNNING)
        return;
    nk_output_clock(l, true);
    if (l->timeout_left_ms > 0)
        nk_process_arm_timeout(l, l->timeout_left_ms);
    l->timeout_left_ms = 0;
}

static void stop_group(struct nk_registry *r, struct nk_process *p)
{
    if (p->state == NK_PROC_RUNNING && !p->reaped)
        (void)kill(-p->pid, r->pause_to ? SIGSTOP : SIGCONT);
}

static void freeze_work(struct nk_job *job)
{
    struct nk_registry *r = NK_CONTAINER_OF(job, struct nk_registry, pause_job);

    r->pause_rc =
        r->marks.count ? nk_tree_freeze(r->marks.first, r->marks.count, r->pause_to, FREEZE_MS) : 0;
}

static void freeze_done(struct nk_job *job, bool canceled)
{
    struct nk_registry *r = NK_CONTAINER_OF(job, struct nk_registry, pause_job);
    struct nk_pause *asked = r->pause_asked;

    (void)canceled;
    r->jobs--;
    r->pause_busy = false;
    r->pause_asked = NULL;
    if (r->closing) {
        nk_registry_release(r);
        return;
    }
    if (!r->pause_to) {
        uv_update_time(r->cfg.loop);
        nk_registry_each_running(r, start_clocks);
        r->paused = false;
    }
    if (asked)
        asked->done(asked, r->pause_rc);
    nk_ending_step(r);
}

int nk_registry_pause(struct nk_registry *r, bool pause, struct nk_pause *p, struct nk_err *err)
{
    if (r->pause_busy)
        return nk_fail(err, NK_CONFLICT, "another pause or resume is under way");
    r->pause_to = pause;
    r->pause_asked = p;
    r->pause_busy = true;
    if (pause) {
        r->paused = true;
        uv_update_time(r->cfg.loop);
        nk_registry_each_running(r, stop_clocks);
    }
    nk_registry_each_running(r, stop_group);
    r->pause_job = (struct nk_job){.work = freeze_work, .done = freeze_done};
    r->jobs++;
    nk_job_submit(r->cfg.jobs, &r->pause_job);
    return 0;
}

bool nk_registry_is_paused(const struct nk_registry *r)
{
    return r->paused;
}

void nk_registry_unpause_wait(struct nk_registry *r, struct nk_pause *p)
{
    if (r->pause_asked == p)
        r->pause_asked = NULL;
}

void nk_registry_started(struct nk_process *p)
{
    struct nk_registry *r = p->registry;

    if (!r->paused)
        return;
    (void)kill(-p->pid, SIGSTOP);
    stop_clocks(r, p);
}
