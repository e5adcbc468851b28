/*
 * A code context: an interpreter that keeps its state between runs, and the turns at it.
 *
 * One run at a time; others wait in order. Its interpreter is started when it is made, and again when
 * the one before has died and somebody wants to run. Idle it costs what the interpreter costs. Owned
 * by the table (code/context_table.h); whoever keeps a pointer holds a reference. Loop thread only.
 */
#ifndef NK_CODE_CONTEXT_H
#define NK_CODE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/id.h"
#include "base/list.h"

#define NK_CONTEXT_QUEUE 64 /* turns that wait */

struct nk_context;
struct nk_outcome;
struct nk_owner;
struct nk_process;
struct nk_registry;
struct nk_run;

/* A place in the queue of a context; embedded by who wants to run. */
struct nk_turn {
    struct nk_list link;
    struct nk_context *context; /* holds a reference; NULL: none is wanted, or it was used */
    /* Once, later: the interpreter is ready and idle, or (with err) there will be none. */
    void (*come)(struct nk_turn *t, const struct nk_err *err);
};

/* Waits until the interpreter is ready, or cannot be. */
struct nk_context_wait {
    struct nk_list link;
    void (*over)(struct nk_context_wait *w, const struct nk_err *err);
};

enum nk_context_status { NK_CONTEXT_IDLE, NK_CONTEXT_BUSY, NK_CONTEXT_DEAD };

struct nk_context_info { /* borrowed from the context */
    const char *id, *language, *name, *cwd;
    int64_t created_wall_ms;
    enum nk_context_status status;
};

/* Made with the prepared command of its interpreter, which it owns from now on, also on failure. */
int nk_context_new(uv_loop_t *loop, struct nk_registry *registry, struct nk_run *take,
                   struct nk_context **out, struct nk_err *err);
void nk_context_ref(struct nk_context *c);
void nk_context_unref(struct nk_context *c);
void nk_context_close(struct nk_context *c); /* ends it, with all its turns; twice is fine */

struct nk_context_info nk_context_info(const struct nk_context *c);
struct nk_owner *nk_context_owner(const struct nk_context *c);
bool nk_context_is_of(const struct nk_context *c, const struct nk_process *first); /* its first */
struct nk_process *nk_context_first(const struct nk_context *c); /* borrowed: right after new */
struct nk_list *nk_context_link(struct nk_context *c);           /* the table's */
struct nk_context *nk_context_linked(struct nk_list *link);

void nk_context_await(struct nk_context *c, struct nk_context_wait *w); /* `over` comes later */
void nk_context_unwait(struct nk_context_wait *w);

/* 0: `come` will be called. -1: NK_BUSY, at once, where it may not wait or too many do. */
int nk_context_wait_turn(struct nk_context *c, struct nk_turn *t, bool queue, struct nk_err *err);
void nk_context_leave(struct nk_turn *t); /* without a run; twice is fine */

/* In one's turn, where the interpreter has ended just before: the turn comes again, first of all. 0, or
 * -1 with NK_NOT_FOUND: the context was deleted. */
int nk_context_wait_again(struct nk_turn *t, struct nk_err *err);
/* In one's turn: what nk_process_start needs of it. NULL: its interpreter has just ended. */
struct nk_host *nk_context_host(struct nk_context *c);
/* Uses the turn: `p` was started on that host. STARTED comes at once. */
void nk_context_run(struct nk_turn *t, struct nk_process *p, struct nk_outcome *outcome,
                    const char *code, bool input);

void nk_context_interrupt(struct nk_context *c);
int nk_context_restart(struct nk_context *c, struct nk_err *err); /* then nk_context_await */

#endif
