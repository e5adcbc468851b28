#include "process/grouping.h"

#include <errno.h>
#include <stdlib.h>

#include "process/cgroup_trees.h"
#include "process/registry_private.h"

#define TICK_MS 100 /* a command that lives from one to the next is worth a group */

enum { NONE, YOUNG, RIPE, HELD, TO_DROP }; /* state; from HELD on the group may be there */
enum { NOTHING, TO_HOLD, TO_REMOVE };      /* due */

static void on_tick(uv_timer_t *timer);

static void arm(struct nk_registry *r)
{
    struct nk_grouping *g = &r->grouping;

    if (g->busy || r->closing || uv_is_active((uv_handle_t *)&g->timer))
        return;
    uv_update_time(r->cfg.loop);
    (void)uv_timer_start(&g->timer, on_tick, TICK_MS, 0);
}

static void work(struct nk_job *job)
{
    struct nk_registry *r = NK_CONTAINER_OF(job, struct nk_registry, grouping.job);
    const struct nk_grouping *g = &r->grouping;
    const struct nk_cgroup_range range = {r->marks.first, r->marks.count, g->due};
    bool holds = false;

    for (unsigned i = 0; i < range.count; i++) {
        if (g->due[i] == TO_REMOVE)
            nk_cgroup_trees_drop(g->groups, range.first + i);
        holds = holds || g->due[i] == TO_HOLD;
    }
    if (holds)
        (void)nk_cgroup_trees_hold(g->groups, &range); /* whoever is outside is found by walking */
}

/* What is to be done now; whether anything is left for the next tick. */
static bool advance(struct nk_registry *r, bool *out_any)
{
    struct nk_grouping *g = &r->grouping;
    bool later = false;

    for (unsigned i = 0; i < r->marks.count; i++) {
        uint8_t *state = &g->state[i];

        g->due[i] = NOTHING;
        if (*state == RIPE) {
            g->due[i] = TO_HOLD;
            *state = HELD;
        } else if (*state == TO_DROP) {
            g->due[i] = TO_REMOVE;
            *state = NONE;
        } else if (*state == YOUNG) {
            *state = RIPE;
            later = true;
        }
        *out_any = *out_any || g->due[i] != NOTHING;
    }
    return later;
}

static void on_done(struct nk_job *job, bool canceled)
{
    struct nk_registry *r = NK_CONTAINER_OF(job, struct nk_registry, grouping.job);

    (void)canceled;
    r->jobs--;
    r->grouping.busy = false;
    if (r->closing) {
        nk_registry_release(r);
        return;
    }
    arm(r);
    nk_ending_step(r);
}

static void on_tick(uv_timer_t *timer)
{
    struct nk_registry *r = timer->data;
    struct nk_grouping *g = &r->grouping;
    bool any = false;

    if (r->ending || r->marks.count == 0)
        return;
    if (r->paused || r->pause_busy) {
        arm(r);
        return;
    }
    if (advance(r, &any) && !any)
        arm(r);
    if (!any)
        return;
    g->busy = true;
    g->job = (struct nk_job){.work = work, .done = on_done, .urgent = true};
    r->jobs++;
    nk_job_submit(r->cfg.jobs, &g->job);
}

void nk_grouping_open(struct nk_registry *r)
{
    (void)uv_timer_init(r->cfg.loop, &r->grouping.timer);
    r->grouping.timer.data = r;
}

int nk_grouping_use(struct nk_registry *r, const struct nk_cgroups *groups)
{
    struct nk_grouping *g = &r->grouping;

    nk_oom_open(&g->oom, groups);
    if (!nk_cgroups_are_open(groups) || r->marks.count == 0)
        return 0;
    g->state = calloc(r->marks.count, 1);
    g->due = calloc(r->marks.count, 1);
    if (!g->state || !g->due) {
        nk_grouping_free(g);
        return -ENOMEM;
    }
    g->groups = groups;
    return 0;
}

void nk_grouping_free(struct nk_grouping *g)
{
    free(g->state);
    free(g->due);
    g->state = g->due = NULL;
    g->groups = NULL;
    nk_oom_close(&g->oom);
}

static uint8_t *state_of(struct nk_registry *r, gid_t mark)
{
    return r->grouping.groups && mark ? &r->grouping.state[mark - r->marks.first] : NULL;
}

void nk_grouping_started(struct nk_process *p)
{
    uint8_t *state = state_of(p->registry, p->mark);

    nk_oom_look(&p->registry->grouping.oom);
    if (!state)
        return;
    *state = YOUNG;
    arm(p->registry);
}

void nk_grouping_gone(struct nk_registry *r, gid_t mark)
{
    uint8_t *state = state_of(r, mark);

    if (!state || *state == NONE)
        return;
    *state = *state == HELD || *state == TO_DROP ? TO_DROP : NONE;
    if (*state == TO_DROP)
        arm(r);
}

void nk_grouping_all(struct nk_registry *r)
{
    for (unsigned i = 0; i < r->marks.count; i++)
        if (r->marks.used[i])
            r->grouping.state[i] = HELD;
}

const struct nk_cgroups *nk_grouping_of(const struct nk_process *p)
{
    const uint8_t *state = state_of(p->registry, p->mark);

    return state && *state == HELD ? p->registry->grouping.groups : NULL;
}

bool nk_grouping_oom(struct nk_process *p)
{
    const struct nk_cgroups *own = nk_grouping_of(p);

    if (own && own->memory >= 0 && !own->memory_v1)
        return nk_cgroup_trees_oom(own, p->mark) > 0;
    return nk_oom_lately(&p->registry->grouping.oom);
}
