/* Pause and resume: every tree stopped until two looks agree, and the commands' clocks with them. */
#include <errno.h>
#include <signal.h>

#include "process/cgroup_trees.h"
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
    if (p->state == NK_PROC_RUNNING && !p->reaped && !p->hosted)
        (void)kill(-p->pid, r->pause_to ? SIGSTOP : SIGCONT);
}

/* Whether the kernel froze the groups; else they are as they were. */
static bool freeze_groups(struct nk_registry *r)
{
    const struct nk_cgroups *groups = r->grouping.groups;
    const struct nk_cgroup_range all = {r->marks.first, r->marks.count, NULL};

    if (!groups)
        return false;
    r->pause_rc = nk_cgroup_trees_freeze(groups, &all, FREEZE_MS);
    if (r->pause_rc == 0)
        return true;
    nk_cgroup_trees_thaw(groups, 0);
    return false;
}

static void freeze_work(struct nk_job *job)
{
    struct nk_registry *r = NK_CONTAINER_OF(job, struct nk_registry, pause_job);

    r->pause_froze = r->pause_to && freeze_groups(r);
    if (r->pause_froze)
        return;
    if (!r->pause_to && r->pause_groups) {
        nk_cgroup_trees_thaw(r->grouping.groups, 0);
        r->pause_rc = 0;
        return;
    }
    r->pause_rc =
        r->marks.count ? nk_tree_freeze(r->marks.first, r->marks.count, r->pause_to, FREEZE_MS) : 0;
}

void nk_pause_over(struct nk_registry *r)
{
    uv_update_time(r->cfg.loop);
    nk_registry_each_running(r, start_clocks);
    r->paused = r->pause_groups = false;
}

static void freeze_done(struct nk_job *job, bool canceled)
{
    struct nk_registry *r = NK_CONTAINER_OF(job, struct nk_registry, pause_job);
    struct nk_pause *asked = r->pause_asked;

    (void)canceled;
    r->jobs--;
    r->pause_busy = false;
    r->pause_asked = NULL;
    if (r->pause_froze) {
        r->pause_groups = true;
        nk_grouping_all(r);
    }
    if (r->closing) {
        nk_registry_release(r);
        return;
    }
    if (!r->pause_to)
        nk_pause_over(r);
    else if (r->ending)
        nk_volley_thaw(r);
    if (asked)
        asked->done(asked, r->pause_rc);
    nk_ending_step(r);
}

static bool is_starting(const struct nk_registry *r)
{
    for (const struct nk_list *o = r->owners.next; o != &r->owners; o = o->next) {
        const struct nk_list *head = &nk_list_entry(o, const struct nk_owner, link)->running;

        for (const struct nk_list *n = head->next; n != head; n = n->next)
            if (nk_list_entry(n, const struct nk_process, link)->state == NK_PROC_STARTING)
                return true;
    }
    return false;
}

/* Nothing is started into a frozen group: whoever starts it would wait for it. */
void nk_pause_step(struct nk_registry *r)
{
    if (!r->pause_waits || is_starting(r))
        return;
    r->pause_waits = false;
    r->pause_job = (struct nk_job){.work = freeze_work, .done = freeze_done, .urgent = true};
    r->jobs++;
    nk_job_submit(r->cfg.jobs, &r->pause_job);
}

bool nk_registry_is_frozen(const struct nk_registry *r)
{
    return r->pause_groups;
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
    if (!r->grouping.groups)
        nk_registry_each_running(r, stop_group);
    r->pause_waits = true;
    nk_pause_step(r);
    return 0;
}

bool nk_registry_is_paused(const struct nk_registry *r)
{
    return r->paused;
}

bool nk_registry_is_pausing(const struct nk_registry *r)
{
    return r->pause_busy || (r->paused && r->pause_rc < 0);
}

void nk_registry_unpause_wait(struct nk_registry *r, struct nk_pause *p)
{
    if (r->pause_asked == p)
        r->pause_asked = NULL;
}

void nk_registry_started(struct nk_process *p)
{
    struct nk_registry *r = p->registry;

    nk_grouping_started(p);
    if (!r->paused)
        return;
    if (!r->grouping.groups)
        (void)kill(-p->pid, SIGSTOP);
    stop_clocks(r, p);
    nk_pause_step(r);
}
