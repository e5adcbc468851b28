#include "code/context.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/clock.h"
#include "code/drivers.h"
#include "code/interp.h"
#include "code/outcome.h"
#include "code/run.h"
#include "process/hosted.h"
#include "process/signals.h"

struct nk_context {
    struct nk_list link; /* of the table */
    unsigned refs;
    uv_loop_t *loop;              /* borrowed: outlives it */
    struct nk_registry *registry; /* likewise */
    char id[NK_ID_MAX];
    int64_t created_wall_ms;
    struct nk_run *launch; /* owned: the command of its interpreter */

    struct nk_host host;
    struct nk_interp *interp; /* NULL: none runs */
    struct nk_process *first; /* borrowed: only compared */
    bool ready;
    bool restarting; /* the one that runs is to go, another comes */
    bool reset;      /* the next run tells that state was lost */
    bool closed;
    uint64_t count; /* runs of this interpreter */

    struct nk_list turns, waits;
    unsigned turn_count;
    bool taken;                 /* a turn has come, and is not over */
    struct nk_watcher run;      /* of the record that runs */
    struct nk_outcome *outcome; /* borrowed: of that record */
    uv_timer_t step;            /* at once: nothing is told from within a call */
};

static void on_step(uv_timer_t *timer);

static void step_soon(struct nk_context *c)
{
    (void)uv_timer_start(&c->step, on_step, 0, 0);
}

void nk_context_ref(struct nk_context *c)
{
    c->refs++;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void nk_context_unref(struct nk_context *c)
{
    if (--c->refs > 0)
        return;
    nk_run_free(c->launch);
    uv_close((uv_handle_t *)&c->step, on_closed);
}

static void tell_waits(struct nk_context *c, const struct nk_err *err)
{
    while (!nk_list_empty(&c->waits)) {
        struct nk_context_wait *w = nk_list_entry(c->waits.next, struct nk_context_wait, link);

        nk_list_remove(&w->link);
        w->over(w, err);
    }
}

static void drop_turn(struct nk_turn *t)
{
    nk_list_remove(&t->link);
    t->context->turn_count--;
}

static void fail_turns(struct nk_context *c, const struct nk_err *err)
{
    while (!nk_list_empty(&c->turns)) {
        struct nk_turn *t = nk_list_entry(c->turns.next, struct nk_turn, link);

        drop_turn(t);
        t->context = NULL;
        t->come(t, err);
        nk_context_unref(c);
    }
}

static void fail_all(struct nk_context *c, const struct nk_err *err)
{
    nk_context_ref(c);
    tell_waits(c, err);
    fail_turns(c, err);
    nk_context_unref(c);
}

static void on_ready(void *ctx)
{
    struct nk_context *c = ctx;

    c->ready = true;
    step_soon(c);
}

static void on_display(void *ctx, const struct nk_json *bundle)
{
    struct nk_context *c = ctx;
    struct nk_process *p = c->run.process;

    if (!c->outcome || p->over)
        return;
    nk_outcome_show(c->outcome, p->log.end, bundle);
    nk_hosted_touch(p);
}

static void on_done(void *ctx, const struct nk_event *e)
{
    struct nk_context *c = ctx;

    if (!c->outcome || e->run != c->count || c->run.process->reaped)
        return;
    nk_outcome_set_result(c->outcome, e->data);
    nk_outcome_set_error(c->outcome, e->error);
    nk_hosted_end(c->run.process, (int)e->status << 8);
}

/* In the midst of a run: its end is the run's end. */
static void end_run(struct nk_context *c, const struct nk_process *interp, const struct nk_err *err)
{
    const char *signal = interp ? nk_process_signal_name(interp) : NULL;
    struct nk_err told;

    if (err)
        told = *err;
    else if (signal)
        (void)nk_fail(&told, NK_INTERNAL, "the interpreter was ended by SIG%s", signal);
    else
        (void)nk_fail(&told, NK_INTERNAL, "the interpreter ended with status %d",
                      interp ? nk_process_exit_code(interp) : 0);
    nk_outcome_fail(c->outcome, "InterpreterEnded", told.msg);
    nk_hosted_end(c->run.process, interp ? interp->wait_status : SIGKILL);
}

static void on_ended(void *ctx, struct nk_process *p, const struct nk_err *err)
{
    struct nk_context *c = ctx;
    bool was_ready = c->ready;

    c->interp = NULL;
    c->host.carrier = NULL;
    c->ready = false;
    c->reset = c->reset || (was_ready && !c->restarting);
    if (c->outcome && !c->run.process->reaped)
        end_run(c, p, err);
    if (p)
        nk_process_end(p, NK_REASON_KILLED); /* what its code left behind goes with it */
    if (!was_ready && err && !c->restarting)
        fail_all(c, err);
    if (!c->closed)
        step_soon(c);
    nk_context_unref(c);
}

static void on_run_event(struct nk_watcher *w, enum nk_proc_event ev, const struct nk_err *err)
{
    struct nk_context *c = NK_CONTAINER_OF(w, struct nk_context, run);

    (void)err;
    if (ev != NK_PROC_EV_EXITED)
        return;
    nk_watcher_detach(w);
    c->outcome = NULL;
    c->taken = false;
    step_soon(c);
    nk_context_unref(c);
}

static void end_hosted(struct nk_host *h, struct nk_process *p, enum nk_reason why)
{
    struct nk_context *c = NK_CONTAINER_OF(h, struct nk_context, host);

    (void)p;
    if (!c->interp)
        return;
    if (why == NK_REASON_KILLED)
        nk_interp_kill(c->interp, why);
    else
        nk_interp_end_run(c->interp, why);
}

static void signal_hosted(struct nk_host *h, struct nk_process *p, int signo, bool tree)
{
    struct nk_context *c = NK_CONTAINER_OF(h, struct nk_context, host);

    (void)p;
    if (!c->interp)
        return;
    if (signo == SIGINT)
        nk_interp_interrupt(c->interp);
    else
        nk_process_signal(nk_interp_process(c->interp), signo, tree);
}

static int start(struct nk_context *c, struct nk_err *err)
{
    static const struct nk_interp_events events = {on_ready, on_display, on_done, on_ended};
    const struct nk_interp_config cfg = {
        .loop = c->loop, .registry = c->registry, .events = &events, .ctx = c};
    const struct nk_driver *driver = nk_drivers_find(nk_run_language(c->launch));

    if (nk_interp_start(&cfg, nk_run_command(c->launch), driver->text, &c->interp, err) < 0)
        return -1;
    nk_context_ref(c); /* until on_ended */
    c->host.carrier = nk_interp_process(c->interp);
    c->restarting = false;
    c->count = 0;
    return 0;
}

int nk_context_new(uv_loop_t *loop, struct nk_registry *registry, struct nk_run *take,
                   struct nk_context **out, struct nk_err *err)
{
    struct nk_context *c = calloc(1, sizeof *c);

    if (!c) {
        nk_run_free(take);
        return nk_fail(err, NK_OVERLOADED, "no memory for a context");
    }
    c->refs = 1;
    c->loop = loop;
    c->registry = registry;
    c->launch = take;
    nk_id_new(c->id);
    c->created_wall_ms = nk_clock_wall_ms();
    c->host.end = end_hosted;
    c->host.signal = signal_hosted;
    c->run.on_event = on_run_event;
    nk_list_init(&c->turns);
    nk_list_init(&c->waits);
    (void)uv_timer_init(loop, &c->step);
    c->step.data = c;
    if (start(c, err) < 0) {
        nk_context_unref(c);
        return -1;
    }
    c->first = c->host.carrier;
    *out = c;
    return 0;
}

void nk_context_close(struct nk_context *c)
{
    struct nk_err err;

    if (c->closed)
        return;
    c->closed = true;
    nk_context_ref(c);
    if (c->run.process)
        nk_process_end(c->run.process, NK_REASON_KILLED);
    if (c->interp)
        nk_interp_kill(c->interp, NK_REASON_KILLED);
    (void)nk_fail(&err, NK_NOT_FOUND, "the context was deleted");
    fail_all(c, &err);
    nk_context_unref(c);
}

static enum nk_context_status status_of(const struct nk_context *c)
{
    if (c->taken)
        return NK_CONTEXT_BUSY;
    return c->interp && !c->closed ? NK_CONTEXT_IDLE : NK_CONTEXT_DEAD;
}

struct nk_context_info nk_context_info(const struct nk_context *c)
{
    const struct nk_command *cmd = nk_run_command(c->launch);

    return (struct nk_context_info){
        .id = c->id,
        .language = nk_run_language(c->launch),
        .name = cmd->name,
        .cwd = cmd->cwd,
        .created_wall_ms = c->created_wall_ms,
        .status = status_of(c),
    };
}

struct nk_owner *nk_context_owner(const struct nk_context *c)
{
    return nk_run_command(c->launch)->owner;
}

bool nk_context_is_of(const struct nk_context *c, const struct nk_process *first)
{
    return c->first == first;
}

struct nk_process *nk_context_first(const struct nk_context *c)
{
    return c->first;
}

struct nk_list *nk_context_link(struct nk_context *c)
{
    return &c->link;
}

struct nk_context *nk_context_linked(struct nk_list *link)
{
    return nk_list_entry(link, struct nk_context, link);
}

void nk_context_await(struct nk_context *c, struct nk_context_wait *w)
{
    nk_list_append(&c->waits, &w->link);
    step_soon(c);
}

void nk_context_unwait(struct nk_context_wait *w)
{
    nk_list_remove(&w->link);
}

int nk_context_wait_turn(struct nk_context *c, struct nk_turn *t, bool queue, struct nk_err *err)
{
    bool free_now = !c->taken && nk_list_empty(&c->turns);

    if (c->closed)
        return nk_fail(err, NK_NOT_FOUND, "the context was deleted");
    if (!free_now && !queue)
        return nk_fail(err, NK_BUSY, "context %s is busy; with queue a run waits for its turn",
                       c->id);
    if (c->turn_count >= NK_CONTEXT_QUEUE)
        return nk_fail(err, NK_BUSY, "%d runs wait for context %s", NK_CONTEXT_QUEUE, c->id);
    nk_context_ref(c);
    t->context = c;
    nk_list_append(&c->turns, &t->link);
    c->turn_count++;
    step_soon(c);
    return 0;
}

int nk_context_wait_again(struct nk_turn *t, struct nk_err *err)
{
    struct nk_context *c = t->context;

    if (c->closed)
        return nk_fail(err, NK_NOT_FOUND, "the context was deleted");
    nk_list_append(c->turns.next, &t->link); /* before the first */
    c->turn_count++;
    c->taken = false;
    step_soon(c);
    return 0;
}

void nk_context_leave(struct nk_turn *t)
{
    struct nk_context *c = t->context;

    if (!c)
        return;
    if (nk_list_linked(&t->link)) {
        drop_turn(t);
    } else {
        c->taken = false;
        step_soon(c);
    }
    t->context = NULL;
    nk_context_unref(c);
}

static void give_turn(struct nk_context *c)
{
    struct nk_turn *t = nk_list_entry(c->turns.next, struct nk_turn, link);

    drop_turn(t);
    c->taken = true;
    t->come(t, NULL);
}

static bool is_wanted(const struct nk_context *c)
{
    return c->restarting || (!c->taken && !nk_list_empty(&c->turns));
}

static void on_step(uv_timer_t *timer)
{
    struct nk_context *c = timer->data;
    struct nk_err err;

    if (c->closed)
        return;
    nk_context_ref(c);
    if (!c->interp && is_wanted(c) && start(c, &err) < 0) {
        c->restarting = false;
        fail_all(c, &err);
    }
    if (c->ready && !c->restarting) {
        tell_waits(c, NULL);
        if (!c->taken && !nk_list_empty(&c->turns))
            give_turn(c);
    }
    if (!c->interp && !nk_list_empty(&c->waits)) {
        (void)nk_fail(&err, NK_EXEC_FAILED, "the interpreter has ended");
        tell_waits(c, &err);
    }
    nk_context_unref(c);
}

struct nk_host *nk_context_host(struct nk_context *c)
{
    return c->ready && !c->restarting && !c->closed ? &c->host : NULL;
}

void nk_context_run(struct nk_turn *t, struct nk_process *p, struct nk_outcome *outcome,
                    const char *code, bool input)
{
    struct nk_context *c = t->context;

    t->context = NULL; /* its reference is the run's now */
    c->outcome = outcome;
    outcome->count = ++c->count;
    outcome->reset = c->reset;
    c->reset = false;
    nk_watcher_attach(&c->run, p);
    nk_interp_run(c->interp, c->count, code, input);
    nk_hosted_begin(p);
}

void nk_context_interrupt(struct nk_context *c)
{
    if (c->interp && c->outcome)
        nk_interp_interrupt(c->interp);
}

int nk_context_restart(struct nk_context *c, struct nk_err *err)
{
    if (c->closed)
        return nk_fail(err, NK_NOT_FOUND, "the context was deleted");
    c->restarting = true;
    c->reset = false;
    if (c->run.process)
        nk_process_end(c->run.process, NK_REASON_KILLED);
    if (c->interp)
        nk_interp_kill(c->interp, NK_REASON_KILLED);
    step_soon(c);
    return 0;
}
