/* What is left of ended commands: found by their marks, told to the records, marks given back. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/cgroup_trees.h"
#include "process/probe.h"
#include "process/registry_private.h"

static void tell_settled(struct nk_registry *r)
{
    struct nk_list todo;

    if (nk_list_empty(&r->settles))
        return;
    todo = r->settles;
    todo.next->prev = &todo;
    todo.prev->next = &todo;
    nk_list_init(&r->settles);
    while (!nk_list_empty(&todo)) {
        struct nk_settle *s = nk_list_entry(todo.next, struct nk_settle, link);

        nk_list_remove(&s->link);
        s->fn(s);
    }
}

static bool nothing_lives(const struct nk_registry *r)
{
    return r->orphans_come && nk_reaper_childless(r->cfg.reaper);
}

/* Nothing of it lives: the mark may be given out again. Without marks that is not sure. */
void nk_trees_clear(struct nk_registry *r, struct nk_process *p)
{
    if (p->live && p->live->terminal && (p->mark || nothing_lives(r)))
        nk_output_gone(p->live); /* not every kernel ends a terminal that nobody has open */
    p->tree = false;
    nk_list_remove(&p->suspect);
    nk_grouping_gone(r, p->mark);
    nk_marks_give(&r->marks, p->mark);
    p->mark = 0;
    nk_process_unref(p);
}

static void clear_all(struct nk_registry *r)
{
    struct nk_list *n, *next;

    for (n = r->suspects.next; n != &r->suspects; n = next) {
        struct nk_process *p = nk_list_entry(n, struct nk_process, suspect);

        next = n->next;
        p->tree = p->tree && !nothing_lives(r);
        if (p->tree_jobs == 0)
            nk_trees_clear(r, p);
    }
    if (nk_list_empty(&r->suspects))
        (void)uv_timer_stop(&r->scan_timer);
    tell_settled(r);
    nk_ending_step(r);
}

static bool is_alive(const struct nk_registry *r, const struct nk_process *p)
{
    if (p->mark)
        return r->scan_rc < 0 || r->scan_alive[p->mark - r->cfg.mark_first];
    return kill(-p->pid, 0) == 0; /* without marks only the command's own group is known */
}

static void apply_scan(struct nk_registry *r)
{
    struct nk_list *n, *next;

    for (n = r->suspects.next; n != &r->suspects; n = next) {
        struct nk_process *p = nk_list_entry(n, struct nk_process, suspect);

        next = n->next;
        if (p->suspect_since > r->scan_serial || p->tree_jobs > 0)
            continue;
        if (is_alive(r, p))
            p->tree = true;
        else
            nk_trees_clear(r, p);
    }
}

static void scan_work(struct nk_job *job)
{
    struct nk_registry *r = NK_CONTAINER_OF(job, struct nk_registry, scan_job);

    r->scan_rc =
        r->scan_alive ? nk_tree_alive(r->cfg.mark_first, r->marks.count, r->scan_alive) : 0;
}

/* A kill is under way: what it leaves is told after it, by the look that follows. */
static bool is_hunting(const struct nk_registry *r)
{
    for (const struct nk_list *n = r->suspects.next; n != &r->suspects; n = n->next)
        if (nk_list_entry(n, const struct nk_process, suspect)->tree_jobs > 0)
            return true;
    return false;
}

/* Looks that cost more come less often: a twentieth of one processor at most, at the end a third. */
static uint64_t scan_interval(const struct nk_registry *r)
{
    uint64_t fair = r->scan_cost_ms * (r->ending ? NK_SCAN_SHARE_AT_END : NK_SCAN_SHARE);
    uint64_t least = r->ending ? NK_SCAN_DELAY_MS : NK_SCAN_INTERVAL_MS;

    return fair > least ? fair : least;
}

static void on_scan_due(uv_timer_t *timer);

/* Whose orphans go to another reaper hears nothing of their ends, and has to look. */
static void look_later(struct nk_registry *r)
{
    uint64_t fair = scan_interval(r);
    uint64_t least = r->ending ? NK_SCAN_INTERVAL_MS : NK_SCAN_ELSEWHERE_MS;

    if (r->orphans_come || nk_list_empty(&r->suspects) || r->scan_busy ||
        uv_is_active((uv_handle_t *)&r->scan_timer))
        return;
    (void)uv_timer_start(&r->scan_timer, on_scan_due, fair > least ? fair : least, 0);
}

static void scan_done(struct nk_job *job, bool canceled)
{
    struct nk_registry *r = NK_CONTAINER_OF(job, struct nk_registry, scan_job);

    r->jobs--;
    r->scan_busy = false;
    if (r->closing) {
        nk_registry_release(r);
        return;
    }
    if (!canceled)
        apply_scan(r);
    r->scan_serial++;
    r->scanned_ms = nk_clock_mono_ms();
    r->scan_cost_ms = r->scanned_ms - r->scan_began_ms;
    if (r->scan_again)
        nk_trees_look(r, !nk_list_empty(&r->settles));
    else if (!is_hunting(r))
        tell_settled(r);
    look_later(r);
    nk_ending_step(r);
}

static void start_scan(struct nk_registry *r)
{
    r->scan_busy = true;
    r->scan_again = false;
    r->scan_began_ms = nk_clock_mono_ms();
    r->scan_job = (struct nk_job){.work = scan_work, .done = scan_done, .urgent = true};
    r->jobs++;
    nk_job_submit(r->cfg.jobs, &r->scan_job);
}

static void on_scan_due(uv_timer_t *timer)
{
    struct nk_registry *r = timer->data;

    if (nothing_lives(r) || nk_list_empty(&r->suspects)) {
        clear_all(r);
        return;
    }
    if (r->scan_busy)
        r->scan_again = true;
    else
        start_scan(r);
}

/* Looks at /proc: at once, or so that many ends share one look. */
void nk_trees_look(struct nk_registry *r, bool soon)
{
    uint64_t since = nk_clock_mono_ms() - r->scanned_ms;
    uint64_t wait = NK_SCAN_DELAY_MS;

    if (r->scan_busy) {
        r->scan_again = true;
        return;
    }
    if (!soon && since < scan_interval(r))
        wait = scan_interval(r) - since;
    if (soon)
        wait = 0;
    uv_update_time(r->cfg.loop);
    if (uv_is_active((uv_handle_t *)&r->scan_timer) && uv_timer_get_due_in(&r->scan_timer) <= wait)
        return;
    (void)uv_timer_start(&r->scan_timer, on_scan_due, wait, 0);
}

void nk_trees_suspect(struct nk_registry *r, struct nk_process *p)
{
    nk_process_ref(p);
    p->suspect_since = r->scan_busy ? r->scan_serial + 1 : r->scan_serial;
    nk_list_append(&r->suspects, &p->suspect);
    if (nothing_lives(r) && p->tree_jobs == 0) {
        nk_trees_clear(r, p);
        return;
    }
    p->tree = p->live && (p->live->out[0].fd >= 0 || p->live->out[1].fd >= 0);
    nk_trees_look(r, false);
}

/* Something was reaped: of the trees that were alive one may be gone. */
void nk_trees_on_pass(void *registry)
{
    struct nk_registry *r = registry;

    if (nk_list_empty(&r->suspects))
        return;
    if (nothing_lives(r))
        clear_all(r);
    else
        nk_trees_look(r, false);
}

void nk_registry_settle(struct nk_registry *r, struct nk_settle *s)
{
    nk_list_append(&r->settles, &s->link);
    nk_trees_look(r, true);
}

void nk_registry_unsettle(struct nk_settle *s)
{
    nk_list_remove(&s->link);
}

static void kill_work(struct nk_job *job)
{
    struct nk_tree_job *t = NK_CONTAINER_OF(job, struct nk_tree_job, job);

    if (t->groups && t->signo == SIGKILL)
        nk_cgroup_trees_kill(t->groups, t->tree.mark);
    if (t->thaw)
        nk_cgroup_trees_thaw(t->groups, t->tree.mark);
    if (t->signo == SIGKILL) {
        (void)nk_tree_kill(&t->tree, NK_KILL_MS);
        return;
    }
    if (nk_tree_signal(&t->tree, t->signo) == 0)
        return;
    if (t->signo == SIGTERM || t->signo == SIGHUP) /* a stopped one must be able to act on it */
        (void)nk_tree_signal(&t->tree, SIGCONT);
}

static void kill_done(struct nk_job *job, bool canceled)
{
    struct nk_tree_job *t = NK_CONTAINER_OF(job, struct nk_tree_job, job);
    struct nk_process *p = t->process;
    struct nk_registry *r = p->registry;

    (void)canceled;
    r->jobs--;
    p->tree_jobs--;
    nk_process_unref(p);
    if (t->live) {
        t->live->kill_busy = false;
        nk_live_unhandle(t->live);
    } else {
        free(t);
    }
    if (r->closing) {
        nk_registry_release(r);
        return;
    }
    if (!nk_list_empty(&r->suspects))
        nk_trees_look(r, true);
    nk_ending_step(r);
}

int nk_tree_job_start(struct nk_process *p, int signo)
{
    struct nk_registry *r = p->registry;
    struct nk_live *l = p->live;
    bool embedded = l && !l->kill_busy;
    struct nk_tree_job *t;

    if (!nk_has(r->cfg.kernel, NK_MECH_PROC)) /* nobody would be found */
        return -ENOSYS;
    if (nk_volley_add(p, signo))
        return 0;
    t = embedded ? &l->kill : calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    *t = (struct nk_tree_job){
        .job = {.work = kill_work, .done = kill_done, .share = p->owner, .urgent = true},
        .tree = {p->mark, p->pid, nk_has(r->cfg.kernel, NK_MECH_PIDFD)},
        .process = p,
        .live = embedded ? l : NULL,
        .groups = nk_grouping_of(p),
        .signo = signo,
    };
    t->thaw = t->groups && r->pause_groups;
    if (embedded) {
        l->kill_busy = true;
        l->open_handles++;
    }
    r->jobs++;
    p->tree_jobs++;
    nk_process_ref(p);
    nk_job_submit(r->cfg.jobs, &t->job);
    return 0;
}
