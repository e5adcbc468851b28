#include "code/run.h"

#include <stdlib.h>

#include "base/attr.h"
#include "code/outcome.h"
#include "code/run_folder.h"
#include "code/run_plan.h"
#include "code/versions.h"
#include "files/task.h"

struct nk_run {
    struct nk_after after;
    struct nk_task task;
    struct nk_run_config cfg;
    struct nk_creds creds;
    const char *language; /* borrowed: of a runtime; NULL: a command, or not chosen yet */
    struct nk_run_folder folder;
    struct nk_snapshot *snapshot; /* owned */
    struct nk_images images;
    struct nk_outcome *outcome; /* owned; NULL: not in a context */

    struct nk_run_plan *plan; /* owned; NULL: it has started */
    struct nk_version_ask ask;
    nk_run_ready_fn ready;
    void *ctx; /* borrowed: who waits for `ready` */
    bool stopped;
    bool is_code;
    bool looked;                /* the second look is over */
    size_t kept;                /* bytes of the snapshot */
    struct nk_process *process; /* holds a reference: it is over, and not announced */
};

static struct nk_run *run_of(struct nk_task *t)
{
    return NK_CONTAINER_OF(t, struct nk_run, task);
}

static void free_run(struct nk_run *r)
{
    nk_run_plan_free(r->plan);
    nk_run_folder_fini(&r->folder);
    nk_images_fini(&r->images);
    nk_snapshot_free(r->snapshot);
    nk_outcome_free(r->outcome);
    free(r);
}

static void start(struct nk_run *r, int (*slice)(struct nk_task *t),
                  void (*over)(struct nk_task *t))
{
    r->task.slice = slice;
    r->task.over = over;
    nk_task_start(&r->task, r->cfg.jobs, r->cfg.switch_user ? &r->creds : NULL, r->cfg.share);
}

static int slice_clear(struct nk_task *t)
{
    return nk_run_folder_clear(&run_of(t)->folder, t->until_ns) > 0 ? NK_TASK_MORE : 0;
}

static void on_cleared(struct nk_task *t)
{
    free_run(run_of(t));
}

/* Nothing runs, or the record is gone. */
static void let_go(struct nk_run *r)
{
    if (nk_run_folder_is_there(&r->folder))
        start(r, slice_clear, on_cleared);
    else
        free_run(r);
}

static size_t memory_of(const struct nk_run *r)
{
    return sizeof *r + r->kept + (r->outcome ? nk_outcome_memory(r->outcome) : 0);
}

static void on_trim(struct nk_after *a, bool all)
{
    struct nk_run *r = NK_CONTAINER_OF(a, struct nk_run, after);

    nk_images_drop_data(&r->images);
    if (r->outcome)
        nk_outcome_drop(r->outcome);
    if (all) {
        nk_images_fini(&r->images);
        nk_snapshot_free(r->snapshot);
        r->snapshot = NULL;
        r->kept = 0;
    }
    a->bytes = memory_of(r);
}

static void announce(struct nk_run *r)
{
    struct nk_process *p = r->process;

    r->process = NULL;
    if (r->snapshot)
        r->kept = nk_snapshot_settle(r->snapshot);
    r->after.bytes = memory_of(r);
    nk_process_announce(p);
    nk_process_unref(p);
}

static void on_cleared_late(struct nk_task *t)
{
    announce(run_of(t));
}

static void on_looked(struct nk_task *t)
{
    struct nk_run *r = run_of(t);

    if (t->result == 0) {
        announce(r);
        return;
    }
    /* Given up in the middle: what was found is not all there is. */
    nk_images_fini(&r->images);
    nk_snapshot_free(r->snapshot);
    r->snapshot = NULL;
    start(r, slice_clear, on_cleared_late);
}

/* The folder first: what is in it counts for no change, and it goes also when the rest is not
 * waited for. */
static int slice_after(struct nk_task *t)
{
    struct nk_run *r = run_of(t);

    if (nk_run_folder_clear(&r->folder, t->until_ns) > 0)
        return NK_TASK_MORE;
    if (!r->snapshot)
        return 0;
    if (!r->looked && nk_snapshot_after(r->snapshot, t->until_ns) > 0)
        return NK_TASK_MORE;
    r->looked = true;
    if (!r->is_code || nk_images_collect(&r->images, r->snapshot, r->cfg.output_dir,
                                         r->cfg.max_outputs, t->until_ns) == 0)
        return 0;
    return NK_TASK_MORE;
}

static void on_ended(struct nk_after *a, struct nk_process *p)
{
    struct nk_run *r = NK_CONTAINER_OF(a, struct nk_run, after);

    nk_process_ref(p);
    r->process = p;
    start(r, slice_after, on_looked);
}

static void on_hurry(struct nk_after *a)
{
    struct nk_run *r = NK_CONTAINER_OF(a, struct nk_run, after);

    if (r->task.running)
        nk_task_stop(&r->task);
}

static void on_release(struct nk_after *a)
{
    let_go(NK_CONTAINER_OF(a, struct nk_run, after));
}

int nk_run_new(const struct nk_run_config *cfg, const struct nk_run_request *ask,
               struct nk_run **out, struct nk_err *err)
{
    struct nk_run *r = calloc(1, sizeof *r);

    if (r && ask->context)
        r->outcome = nk_outcome_new(cfg->max_outputs);
    if (!r || (ask->context && !r->outcome) || nk_run_plan_new(ask, &r->plan) < 0) {
        if (r)
            nk_outcome_free(r->outcome);
        free(r);
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    }
    r->cfg = *cfg;
    r->after = (struct nk_after){
        .ended = on_ended, .hurry = on_hurry, .trim = on_trim, .release = on_release};
    r->plan->cmd.after = &r->after;
    r->creds = ask->cmd->user->creds;
    r->is_code = ask->code != NULL;
    r->language = ask->context;
    nk_run_folder_init(&r->folder);
    *out = r;
    return 0;
}

void nk_run_free(struct nk_run *r)
{
    if (r)
        let_go(r);
}

static int slice_prepare(struct nk_task *t)
{
    struct nk_run *r = run_of(t);

    if (r->plan->driver) {
        if (nk_run_plan_find(r->plan, r->cfg.runtimes, &t->err) < 0)
            return -1;
        return r->plan->checks ? 0 : nk_run_plan_drive(r->plan, &t->err);
    }
    if (r->is_code && !r->outcome && !nk_run_folder_is_there(&r->folder)) {
        if (nk_run_plan_find(r->plan, r->cfg.runtimes, &t->err) < 0)
            return -1;
        if (r->plan->checks)
            return 0;
        if (nk_run_plan_fill(r->plan, &r->folder, r->cfg.temp_dirs, &t->err) < 0)
            return -1;
    }
    if (!r->snapshot && nk_snapshot_new(r->cfg.roots, r->is_code ? r->cfg.output_dir : NULL,
                                        r->creds.uid, &r->snapshot) < 0)
        return nk_fail(&t->err, NK_OVERLOADED, "no memory for this request");
    return nk_snapshot_before(r->snapshot, t->until_ns) > 0 ? NK_TASK_MORE : 0;
}

static void on_prepared(struct nk_task *t);

static void tell_stopped(struct nk_run *r)
{
    struct nk_err err;

    (void)nk_fail(&err, NK_SHUTTING_DOWN, "the request was given up");
    r->ready(r->ctx, &err);
}

static void on_version(struct nk_version_ask *ask, const char *version)
{
    struct nk_run *r = NK_CONTAINER_OF(ask, struct nk_run, ask);

    nk_run_plan_check(r->plan, version);
    if (r->stopped)
        tell_stopped(r);
    else
        start(r, slice_prepare, on_prepared);
}

static void on_prepared(struct nk_task *t)
{
    struct nk_run *r = run_of(t);
    struct nk_run_plan *plan = r->plan;

    r->ask.told = on_version;
    if (t->result < 0) {
        r->ready(r->ctx, &t->err);
    } else if (r->stopped) {
        tell_stopped(r);
    } else if (!plan->checks) {
        if (plan->runtime)
            r->language = plan->runtime->id;
        r->ready(r->ctx, NULL);
    } else if (nk_versions_ask(r->cfg.versions, &plan->tool, plan->way->version, &r->ask) < 0) {
        tell_stopped(r);
    }
}

void nk_run_prepare(struct nk_run *r, nk_run_ready_fn ready, void *ctx)
{
    r->ready = ready;
    r->ctx = ctx;
    start(r, slice_prepare, on_prepared);
}

void nk_run_stop(struct nk_run *r)
{
    r->stopped = true;
    if (r->task.running)
        nk_task_stop(&r->task);
}

const struct nk_command *nk_run_command(const struct nk_run *r)
{
    return &r->plan->cmd;
}

void nk_run_started(struct nk_run *r)
{
    nk_run_plan_free(r->plan);
    r->plan = NULL;
}

const struct nk_run *nk_run_of(const struct nk_process *p)
{
    return p->after ? NK_CONTAINER_OF(p->after, struct nk_run, after) : NULL;
}

const char *nk_run_language(const struct nk_run *r)
{
    return r->language;
}

const char *nk_run_code(const struct nk_run *r)
{
    return r->plan->code;
}

struct nk_outcome *nk_run_outcome(const struct nk_run *r)
{
    return r->outcome;
}

size_t nk_run_changes(const struct nk_run *r, const struct nk_change **out)
{
    return r->snapshot ? nk_snapshot_changes(r->snapshot, out) : 0;
}

size_t nk_run_images(const struct nk_run *r, const struct nk_image **out)
{
    *out = r->images.item;
    return r->images.count;
}

const char *nk_run_path(const struct nk_run *r, const struct nk_change *c)
{
    return r->cfg.relative ? c->rest : c->path;
}
