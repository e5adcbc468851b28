/*
 * The places where children are started: two permanent threads with a bounded queue in front of
 * them, and the loop itself.
 *
 * Private to spawn.c, which owns it and does the starting; the lock is in here, so that no other file
 * needs one. The threads carry no_new_privs, the filter and an empty bounding set, all of which
 * children inherit.
 */
#ifndef NK_PROCESS_STARTERS_H
#define NK_PROCESS_STARTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"
#include "process/confine.h"
#include "process/spawn.h"

#define NK_STARTER_THREADS 2
#define NK_STARTER_QUEUE_MAX 1024 /* starts that wait for a thread; above: refused */
#define NK_STARTER_QUEUE_MS 10000 /* how long one waits there */
#define NK_STARTER_HELD_MS 20  /* so long one identity's start holds a thread: it gets no other */
#define NK_STARTER_NUDGE_MS 10 /* a start that takes longer may have been stopped by its user */
#define NK_STARTER_STACK (64u * 1024u)

struct nk_starter {
    struct nk_starters *all; /* borrowed: the owner */
    char *stack;             /* owned; of the child until its exec */
    int status[2];           /* owned: the status pipe; reading never waits */
    bool confined;           /* the thread carries no_new_privs and the filter */
    bool bounded;            /* its bounding set is empty */
    /* under the lock: */
    struct nk_spawn *current; /* borrowed: between clone and exec */
    uint64_t begun_ms;
};

typedef void (*nk_starter_run_fn)(struct nk_starter *st, struct nk_spawn *s);

struct nk_starters {
    nk_starter_run_fn run;          /* one start, in a thread */
    uv_async_t *over_async;         /* borrowed: sent when `over` has grown */
    const struct nk_filter *filter; /* borrowed; NULL: no seccomp */
    bool filter_foreign;            /* only children may install it */
    unsigned deadline_ms;           /* of a start, once a child is made */
    struct nk_starter own;          /* the loop's */
    struct nk_starter each[NK_STARTER_THREADS];
    uv_thread_t thread[NK_STARTER_THREADS];
    unsigned running; /* threads */

    uv_mutex_t lock; /* what follows, and the marked part of the starters */
    uv_cond_t more;
    struct nk_list queue;
    unsigned queued;
    struct nk_list over;
    uint64_t own_starts;
    bool guarded;     /* the first thread looks after the loop's starts */
    bool passed_over; /* a start waits for the end of another one of its identity */
    bool stopping;
};

/* `t` has the first five fields set. 0 or -errno, with nothing left behind. */
int nk_starters_init(struct nk_starters *t);
void nk_starters_fini(struct nk_starters *t); /* joins the threads; no start is under way */

bool nk_starters_put(struct nk_starters *t, struct nk_spawn *s);   /* false: the queue is full */
void nk_starters_take(struct nk_starters *t, struct nk_list *out); /* the starts that are over */
/* Wakes children that take long, kills the late ones; `out`: the starts that waited too long. */
void nk_starters_expire(struct nk_starters *t, struct nk_list *out);
/* The first thread looks after the loop's starts, until there was none for a second. */
void nk_starters_guard(struct nk_starters *t);

/* Around the clone: in between, the child may be killed for being late. */
void nk_starter_begin(struct nk_starter *st, struct nk_spawn *s);
void nk_starter_end(struct nk_starter *st);

char *
nk_starter_stack_new(void); /* NK_STARTER_STACK bytes, the lowest page without access; or NULL */
void nk_starter_stack_free(char *stack);

#endif
