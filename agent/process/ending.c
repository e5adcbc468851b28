/* The end of everything: TERM to all, a grace, KILL, and then word that nothing runs. */
#include <signal.h>
#include <stdlib.h>

#include "process/registry_private.h"

#define HANG_UP_MS 500 /* from TERM to the HUP of commands on a terminal */
#define HUNT_MS 6000   /* after KILL; what then still lives cannot be killed by us */

void nk_registry_each_running(struct nk_registry *r, nk_each_fn fn)
{
    for (struct nk_list *o = r->owners.next; o != &r->owners; o = o->next) {
        struct nk_owner *owner = nk_list_entry(o, struct nk_owner, link);
        struct nk_list *n, *next;

        for (n = owner->running.next; n != &owner->running; n = next) {
            next = n->next;
            fn(r, nk_list_entry(n, struct nk_process, link));
        }
    }
}

static void each_suspect(struct nk_registry *r, nk_each_fn fn)
{
    struct nk_list *n, *next;

    for (n = r->suspects.next; n != &r->suspects; n = next) {
        next = n->next;
        fn(r, nk_list_entry(n, struct nk_process, suspect));
    }
}

static void send_term(struct nk_registry *r, struct nk_process *p)
{
    if (p->state == NK_PROC_STARTING) {
        nk_process_end(p, r->end_why);
        return;
    }
    if (p->state == NK_PROC_RUNNING && !p->over && !p->ended_by_us) {
        p->ended_by_us = true;
        p->reason = r->end_why;
    }
    nk_process_signal(p, SIGTERM, true);
}

/* A shell that is typed at heeds no TERM; one that heeds it had time to begin with that. */
static void hang_up(struct nk_registry *r, struct nk_process *p)
{
    (void)r;
    if (p->tty)
        nk_process_signal(p, SIGHUP, true);
}

static void send_kill(struct nk_registry *r, struct nk_process *p)
{
    nk_process_end(p, r->end_why);
}

static bool is_over(const struct nk_registry *r)
{
    return r->stats.running == 0 && r->residents == 0 && nk_list_empty(&r->suspects) &&
           r->jobs == 0;
}

static void on_hunt_over(uv_timer_t *timer)
{
    struct nk_registry *r = timer->data;

    r->ended_told = true;
    r->end_done(r->end_ctx);
}

static void on_grace_over(uv_timer_t *timer)
{
    struct nk_registry *r = timer->data;

    r->killing = true;
    nk_volley_begin(r, SIGKILL);
    nk_registry_each_running(r, send_kill);
    each_suspect(r, send_kill);
    nk_volley_go(r);
    (void)uv_timer_start(timer, on_hunt_over, HUNT_MS, 0);
}

static void on_unheeded(uv_timer_t *timer)
{
    struct nk_registry *r = timer->data;

    nk_volley_begin(r, SIGHUP);
    nk_registry_each_running(r, hang_up);
    nk_volley_go(r);
    (void)uv_timer_start(timer, on_grace_over, r->end_grace_ms, 0);
}

static void on_over(uv_timer_t *timer)
{
    struct nk_registry *r = timer->data;

    if (!is_over(r)) {
        nk_ending_step(r);
        return;
    }
    r->ended_told = true;
    r->end_done(r->end_ctx);
}

void nk_ending_step(struct nk_registry *r)
{
    if (r->ending && !r->ended_told && is_over(r))
        (void)uv_timer_start(&r->end_timer, on_over, 0, 0);
}

void nk_registry_end_all(struct nk_registry *r, enum nk_reason why, unsigned grace_ms,
                         void (*done)(void *ctx), void *ctx)
{
    if (r->ended_told || r->killing)
        return;
    uv_update_time(r->cfg.loop);
    if (!r->ending) {
        r->ending = true;
        r->end_why = why;
        r->end_done = done;
        r->end_ctx = ctx;
        nk_volley_begin(r, SIGTERM);
        nk_registry_each_running(r, send_term);
        each_suspect(r, send_term);
        if (r->paused && !r->pause_busy)
            nk_volley_thaw(r);
        nk_volley_go(r);
        if (!nk_list_empty(&r->suspects))
            nk_trees_look(r, false);
    }
    r->end_grace_ms = grace_ms > HANG_UP_MS ? grace_ms - HANG_UP_MS : 0;
    (void)uv_timer_start(&r->end_timer, r->end_grace_ms > 0 ? on_unheeded : on_grace_over,
                         grace_ms - r->end_grace_ms, 0);
    nk_ending_step(r);
}
