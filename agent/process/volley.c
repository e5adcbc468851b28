#include "process/volley.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "process/cgroup_trees.h"
#include "process/probe.h"
#include "process/registry_private.h"

enum { OUT, IN, IN_GROUP }; /* a byte of nk_volley_set.mark; the last has a control group too */

static void fini_set(struct nk_volley_set *set)
{
    free(set->mark);
    free(set->leader);
    *set = (struct nk_volley_set){0};
}

int nk_volley_init(struct nk_registry *r)
{
    struct nk_volley *s = &r->volley;

    if (r->marks.count == 0)
        return 0;
    s->due.mark = calloc(r->marks.count, 1);
    s->now.mark = calloc(r->marks.count, 1);
    if (s->due.mark && s->now.mark)
        return 0;
    nk_volley_fini(s);
    return -ENOMEM;
}

void nk_volley_fini(struct nk_volley *s)
{
    fini_set(&s->due);
    fini_set(&s->now);
}

static struct nk_tree tree_of(const struct nk_registry *r)
{
    const struct nk_volley_set *now = &r->volley.now;
    struct nk_tree t = {.pidfd = nk_has(r->cfg.kernel, NK_MECH_PIDFD)};

    if (r->marks.count > 0) {
        t.mark = r->marks.first;
        t.marks = r->marks.count;
        t.which = now->mark;
    } else {
        t.leaders = now->leader;
        t.leader_count = now->count;
    }
    return t;
}

/* PROGRAM's tree was paused with the others, and is woken with them. */
static void thaw(const struct nk_registry *r)
{
    if (r->grouping.groups)
        nk_cgroup_trees_thaw(r->grouping.groups, 0);
    if (r->marks.count > 0)
        (void)nk_tree_freeze(r->marks.first, r->marks.count, false, NK_KILL_MS);
}

static void kill_groups(const struct nk_registry *r)
{
    for (unsigned i = 0; i < r->marks.count; i++)
        if (r->volley.now.mark[i] == IN_GROUP)
            nk_cgroup_trees_kill(r->grouping.groups, r->marks.first + i);
}

static void work(struct nk_job *job)
{
    const struct nk_registry *r = NK_CONTAINER_OF(job, struct nk_registry, volley.job);
    int signo = r->volley.now.signo;
    struct nk_tree tree = tree_of(r);

    if (r->volley.now.thaw)
        thaw(r);
    if (r->volley.now.count == 0)
        return;
    if (signo == SIGKILL) {
        kill_groups(r);
        (void)nk_tree_kill(&tree, NK_KILL_MS);
    } else if (signo != 0 && nk_tree_signal(&tree, signo) != 0) {
        (void)nk_tree_signal(&tree, SIGCONT); /* a stopped one must be able to act on it */
    }
}

static bool is_due(const struct nk_volley *s)
{
    return !s->busy && !s->gathers && (s->due.count > 0 || s->due.thaw);
}

static void start(struct nk_registry *r);

static void on_done(struct nk_job *job, bool canceled)
{
    struct nk_registry *r = NK_CONTAINER_OF(job, struct nk_registry, volley.job);
    struct nk_volley *s = &r->volley;

    (void)canceled;
    r->jobs--;
    s->busy = false;
    if (r->closing) {
        nk_registry_release(r);
        return;
    }
    if (s->now.thaw)
        nk_pause_over(r);
    if (is_due(s))
        start(r);
    else if (!nk_list_empty(&r->suspects))
        nk_trees_look(r, true);
    nk_ending_step(r);
}

static void start(struct nk_registry *r)
{
    struct nk_volley *s = &r->volley;
    struct nk_volley_set last = s->now;

    s->now = s->due;
    s->due = last;
    s->due.count = 0;
    s->due.signo = 0;
    s->due.thaw = false;
    if (s->due.mark)
        memset(s->due.mark, OUT, r->marks.count);
    s->busy = true;
    s->job = (struct nk_job){.work = work, .done = on_done, .urgent = true};
    r->jobs++;
    nk_job_submit(r->cfg.jobs, &s->job);
}

void nk_volley_begin(struct nk_registry *r, int signo)
{
    r->volley.gathers = true;
    r->volley.due.signo = signo;
}

static bool add_leader(struct nk_volley_set *set, pid_t pid)
{
    size_t cap = set->cap ? set->cap * 2 : 16;
    pid_t *more;

    if (set->count == set->cap) {
        more = realloc(set->leader, cap * sizeof *more);
        if (!more)
            return false;
        set->leader = more;
        set->cap = cap;
    }
    set->leader[set->count++] = pid;
    return true;
}

bool nk_volley_add(struct nk_process *p, int signo)
{
    struct nk_registry *r = p->registry;
    struct nk_volley *s = &r->volley;

    if (!s->gathers || signo != s->due.signo || (r->marks.count > 0) != (p->mark != 0))
        return false;
    if (p->mark == 0)
        return add_leader(&s->due, p->pid);
    s->due.mark[p->mark - r->marks.first] = nk_grouping_of(p) ? IN_GROUP : IN;
    s->due.count++;
    return true;
}

void nk_volley_go(struct nk_registry *r)
{
    r->volley.gathers = false;
    if (is_due(&r->volley))
        start(r);
}

void nk_volley_thaw(struct nk_registry *r)
{
    r->volley.due.thaw = true;
    if (is_due(&r->volley))
        start(r);
}
