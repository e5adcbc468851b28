#include "process/registry.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/probe.h"
#include "process/registry_private.h"

static void init_owner(struct nk_owner *o)
{
    *o = (struct nk_owner){0};
    nk_list_init(&o->running);
    nk_list_init(&o->ended);
    nk_list_init(&o->held);
}

static int init_handles(struct nk_registry *r)
{
    (void)uv_timer_init(r->cfg.loop, &r->scan_timer);
    (void)uv_timer_init(r->cfg.loop, &r->end_timer);
    r->scan_timer.data = r;
    r->end_timer.data = r;
    nk_grouping_open(r);
    r->open_handles = 3;
    return 0;
}

int nk_registry_open(const struct nk_registry_config *cfg, struct nk_registry **out)
{
    struct nk_registry *r = calloc(1, sizeof *r);
    int rc;

    if (!r)
        return -ENOMEM;
    r->cfg = *cfg;
    rc = nk_marks_init(&r->marks, r->cfg.mark_first, r->cfg.mark_last);
    if (rc == 0 && r->marks.count > 0) {
        r->scan_alive = calloc(r->marks.count, 1);
        rc = r->scan_alive ? 0 : -ENOMEM;
    }
    if (rc == 0)
        rc = nk_volley_init(r);
    if (rc < 0) {
        nk_marks_fini(&r->marks);
        free(r->scan_alive);
        free(r);
        return rc;
    }
    r->orphans_come = getpid() == 1 || nk_has(cfg->kernel, NK_MECH_SUBREAPER);
    r->scan_serial = 1;
    nk_list_init(&r->owners);
    nk_list_init(&r->lives);
    nk_list_init(&r->suspects);
    nk_list_init(&r->settles);
    init_owner(&r->own);
    nk_list_append(&r->owners, &r->own.link);
    (void)init_handles(r);
    nk_reaper_on_pass(cfg->reaper, nk_trees_on_pass, r);
    *out = r;
    return 0;
}

void nk_registry_release(struct nk_registry *r)
{
    if (!r->closing || r->open_handles > 0 || r->jobs > 0)
        return;
    nk_marks_fini(&r->marks);
    nk_grouping_free(&r->grouping);
    nk_volley_fini(&r->volley);
    free(r->scan_alive);
    free(r);
}

static void on_closed(uv_handle_t *handle)
{
    struct nk_registry *r = handle->data;

    r->open_handles--;
    nk_registry_release(r);
}

static void leave_ended(struct nk_process *p)
{
    struct nk_owner *o = p->owner;

    nk_list_remove(&p->link);
    p->registry->stats.ended--;
    if (p->holds > 0) {
        o->held_count--;
        return;
    }
    o->ended_count--;
    o->output_bytes -= p->counted;
    p->counted = 0;
}

/* Out of the lists and the counts; the registry's reference goes. */
static void unlist(struct nk_process *p)
{
    if (!p->listed)
        return;
    p->listed = false;
    if (p->state == NK_PROC_EXITED && nk_list_linked(&p->link))
        leave_ended(p);
    nk_process_unref(p);
}

static void join_ended(struct nk_process *p)
{
    struct nk_owner *o = p->owner;

    p->registry->stats.ended++;
    if (p->holds > 0) {
        nk_list_append(&o->held, &p->link);
        o->held_count++;
        return;
    }
    nk_list_append(&o->ended, &p->link);
    o->ended_count++;
    nk_registry_recount(p);
    while (o->ended_count > NK_KEEP_ENDED)
        unlist(nk_list_entry(o->ended.next, struct nk_process, link));
}

/* Pipes that somebody holds whom we could not end would hold the loop. */
static void leave_all(struct nk_registry *r)
{
    struct nk_list *n, *next;

    for (n = r->lives.next; n != &r->lives; n = next) {
        next = n->next;
        nk_live_leave(nk_list_entry(n, struct nk_live, link));
    }
}

void nk_registry_close(struct nk_registry **slot)
{
    struct nk_registry *r = *slot;

    if (!r)
        return;
    *slot = NULL;
    nk_reaper_on_pass(r->cfg.reaper, NULL, NULL);
    while (!nk_list_empty(&r->suspects))
        nk_trees_clear(r, nk_list_entry(r->suspects.next, struct nk_process, suspect));
    leave_all(r);
    while (!nk_list_empty(&r->owners)) {
        struct nk_owner *o = nk_list_entry(r->owners.next, struct nk_owner, link);

        nk_registry_remove_owner(r, o);
    }
    r->closing = true;
    uv_close((uv_handle_t *)&r->scan_timer, on_closed);
    uv_close((uv_handle_t *)&r->end_timer, on_closed);
    uv_close((uv_handle_t *)&r->grouping.timer, on_closed);
}

void nk_registry_use_marks(struct nk_registry *r, bool use)
{
    if (use)
        return;
    nk_marks_fini(&r->marks);
    free(r->scan_alive);
    r->scan_alive = NULL;
}

int nk_registry_use_groups(struct nk_registry *r, const struct nk_cgroups *groups)
{
    return nk_grouping_use(r, groups);
}

gid_t nk_registry_take_mark(struct nk_registry *r)
{
    return nk_marks_take(&r->marks);
}

void nk_registry_marks(const struct nk_registry *r, gid_t *out_first, unsigned *out_count)
{
    *out_first = r->marks.first;
    *out_count = r->marks.count;
}

struct nk_owner *nk_registry_own(struct nk_registry *r)
{
    return &r->own;
}

void nk_registry_add_owner(struct nk_registry *r, struct nk_owner *o)
{
    init_owner(o);
    nk_list_append(&r->owners, &o->link);
}

void nk_registry_remove_owner(struct nk_registry *r, struct nk_owner *o)
{
    struct nk_list *const heads[] = {&o->ended, &o->held};

    (void)r;
    for (size_t i = 0; i < NK_COUNT(heads); i++)
        while (!nk_list_empty(heads[i]))
            unlist(nk_list_entry(heads[i]->next, struct nk_process, link));
    nk_list_remove(&o->link);
}

static bool name_taken(const struct nk_owner *o, const char *name)
{
    for (const struct nk_list *n = o->running.next; n != &o->running; n = n->next) {
        const struct nk_process *p = nk_list_entry(n, const struct nk_process, link);

        if (p->listed && p->name && strcmp(p->name, name) == 0)
            return true;
    }
    return false;
}

static int may_start(struct nk_registry *r, struct nk_owner *o, const struct nk_command *cmd,
                     struct nk_err *err)
{
    const char *name = cmd->name;

    if (r->ending)
        return nk_fail(err, NK_SHUTTING_DOWN, "the sandbox is ending");
    if (r->paused)
        return nk_fail(err, NK_PAUSED, "the sandbox is paused");
    if (o->running_count >= r->cfg.max_commands && !cmd->resident)
        return nk_fail(err, NK_BUSY, "all %u command slots are taken", r->cfg.max_commands);
    if (name && name_taken(o, name))
        return nk_fail(err, NK_EXISTS, "a process named %s is running", name);
    return 0;
}

/* A resident is kept by who watches it, and by what of it lives. */
static struct nk_process *new_record(struct nk_registry *r, struct nk_owner *o,
                                     const struct nk_command *cmd, gid_t mark)
{
    struct nk_process *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->registry = r;
    p->owner = o;
    p->listed = !cmd->resident;
    p->refs = p->listed ? 1 : 0;
    p->resident = cmd->resident;
    p->hosted = cmd->host != NULL;
    p->host = cmd->host;
    p->mark = mark;
    p->serial = ++r->serial;
    nk_id_new(p->id);
    nk_list_init(&p->watchers);
    return p;
}

static void take_slot(struct nk_process *p)
{
    struct nk_registry *r = p->registry;

    nk_list_append(&p->owner->running, &p->link);
    p->owner->activity++;
    if (p->resident) {
        r->residents++;
        return;
    }
    p->owner->running_count++;
    r->stats.running++;
    r->stats.started += !p->owner->uncounted;
}

struct nk_process *nk_registry_adopt(struct nk_registry *r, const struct nk_command *cmd,
                                     struct nk_err *err)
{
    struct nk_owner *o = cmd->owner ? cmd->owner : &r->own;
    bool marks = r->marks.count > 0 && !cmd->host;
    struct nk_process *p;
    gid_t mark;

    if (may_start(r, o, cmd, err) < 0)
        return NULL;
    mark = marks ? nk_marks_take(&r->marks) : 0;
    if (marks && mark == 0) {
        nk_trees_look(r, true);
        (void)nk_fail(err, NK_OVERLOADED, "no mark is free: too many trees are alive");
        return NULL;
    }
    p = new_record(r, o, cmd, mark);
    if (!p) {
        nk_marks_give(&r->marks, mark);
        (void)nk_fail(err, NK_OVERLOADED, "no memory for a command");
        return NULL;
    }
    take_slot(p);
    return p;
}

static void give_slot(struct nk_process *p)
{
    nk_list_remove(&p->link);
    p->owner->activity++;
    if (p->resident) {
        p->registry->residents--;
        return;
    }
    p->owner->running_count--;
    p->registry->stats.running--;
}

void nk_registry_failed(struct nk_process *p)
{
    struct nk_registry *r = p->registry;

    give_slot(p);
    r->stats.failed += !p->owner->uncounted && !p->resident;
    nk_marks_give(&r->marks, p->mark);
    p->mark = 0;
    unlist(p);
    nk_pause_step(r);
    nk_ending_step(r);
}

static void kill_tree(struct nk_process *p)
{
    if (p->tree_jobs == 0)
        (void)nk_tree_job_start(p, SIGKILL);
}

/* Hosted ones end with what they run in, which is a running one itself. */
void nk_registry_kill_owner(struct nk_registry *r, const struct nk_owner *owner)
{
    struct nk_list *n;

    for (n = owner->running.next; n != &owner->running; n = n->next) {
        struct nk_process *p = nk_list_entry(n, struct nk_process, link);

        if (p->state == NK_PROC_RUNNING && !p->hosted)
            kill_tree(p);
    }
    for (n = r->suspects.next; n != &r->suspects; n = n->next) {
        struct nk_process *p = nk_list_entry(n, struct nk_process, suspect);

        if (p->owner == owner)
            kill_tree(p);
    }
}

bool nk_registry_may_live(const struct nk_registry *r, const struct nk_owner *owner)
{
    if (!nk_list_empty(&owner->running))
        return true;
    for (const struct nk_list *n = r->suspects.next; n != &r->suspects; n = n->next)
        if (nk_list_entry(n, const struct nk_process, suspect)->owner == owner)
            return true;
    return false;
}

size_t nk_registry_memory(const struct nk_process *p)
{
    size_t n = nk_outlog_memory(&p->log);

    if (p->captures)
        n += p->captures[0].size + p->captures[1].size;
    if (p->after)
        n += p->after->bytes;
    return n;
}

static void drop_output(struct nk_process *p)
{
    nk_outlog_drop(&p->log);
    if (p->after)
        p->after->trim(p->after, true);
    nk_registry_recount(p);
}

/* The oldest lose their output first. */
static void bound_outputs(struct nk_registry *r, struct nk_owner *o)
{
    struct nk_list *n = o->ended.next;

    while (n != &o->ended && o->output_bytes > r->cfg.log_total) {
        struct nk_process *p = nk_list_entry(n, struct nk_process, link);

        n = n->next;
        if (p->counted > 0)
            drop_output(p);
    }
}

void nk_registry_recount(struct nk_process *p)
{
    size_t now = nk_registry_memory(p);

    if (p->state != NK_PROC_EXITED || !p->listed || p->holds > 0 || now == p->counted)
        return;
    p->owner->output_bytes += now - p->counted;
    p->counted = now;
    bound_outputs(p->registry, p->owner);
}

void nk_registry_ended(struct nk_process *p)
{
    struct nk_registry *r = p->registry;

    give_slot(p);
    if (!p->resident) {
        r->stats.exited += !p->owner->uncounted;
        r->stats.killed += p->killed;
        r->stats.timed_out += p->timed_out;
    }
    if (p->listed) {
        if (p->reason == NK_REASON_CLIENT_GONE) /* nobody is there to read it */
            nk_outlog_drop(&p->log);
        else
            nk_outlog_shrink(&p->log);
        join_ended(p);
    }
    if (!p->hosted) /* what it left belongs to its carrier */
        nk_trees_suspect(r, p);
    nk_ending_step(r);
}

void nk_registry_hold(struct nk_process *p)
{
    bool remembered = p->state == NK_PROC_EXITED && nk_list_linked(&p->link);

    nk_process_ref(p);
    if (remembered)
        leave_ended(p);
    p->holds++;
    if (remembered)
        join_ended(p);
}

void nk_registry_unhold(struct nk_process *p)
{
    bool remembered = p->state == NK_PROC_EXITED && nk_list_linked(&p->link);

    if (remembered)
        leave_ended(p);
    p->holds--;
    if (p->holds == 0 && p->state == NK_PROC_EXITED)
        nk_process_drop_results(p);
    if (remembered)
        join_ended(p);
    nk_process_unref(p);
}

void nk_registry_forget(struct nk_registry *r, struct nk_process *p)
{
    (void)r;
    nk_process_ref(p);
    nk_process_end(p, NK_REASON_KILLED);
    unlist(p);
    nk_process_unref(p);
}

const struct nk_registry_stats *nk_registry_stats(const struct nk_registry *r)
{
    return &r->stats;
}

unsigned nk_registry_enter(const struct nk_registry *r, int out[NK_CGROUP_ENTER_MAX])
{
    return nk_cgroups_enter(r->grouping.groups, out);
}

uv_loop_t *nk_registry_loop(const struct nk_registry *r)
{
    return r->cfg.loop;
}

struct nk_spawner *nk_registry_spawner(const struct nk_registry *r)
{
    return r->cfg.spawner;
}

struct nk_reaper *nk_registry_reaper(const struct nk_registry *r)
{
    return r->cfg.reaper;
}

struct nk_list *nk_registry_lives(struct nk_registry *r)
{
    return &r->lives;
}

void nk_registry_count_read(struct nk_registry *r, size_t n)
{
    r->stats.bytes_read += n;
}
