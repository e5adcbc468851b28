/*
 * One interpreter process of a context: started, asked to run code, interrupted, ended.
 *
 * What it says is told only when all that was written before it has been read: so an end is exact, and
 * what is shown has its place in the output. One that breaks its channel, or is not ready in time, is
 * killed. On the heap; frees itself after `ended`. Loop thread only.
 */
#ifndef NK_CODE_INTERP_H
#define NK_CODE_INTERP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/json.h"
#include "code/event.h"
#include "process/process.h"

#define NK_INTERP_START_MS 30000 /* until it is ready */
#define NK_INTERP_EXIT_MS 1000   /* from the end of its channel to its own */
#define NK_INTERP_GRACE_MS 2000  /* from an interrupt that must be heeded to KILL */

struct nk_interp;
struct nk_registry;

struct nk_interp_events {
    void (*ready)(void *ctx);
    void (*display)(void *ctx, const struct nk_json *bundle);
    void (*done)(void *ctx, const struct nk_event *e);
    /* It never ran (`p` NULL), or has ended: `p` tells how. `err`: why it was not of use, or NULL.
     * The interpreter is not to be touched any more. */
    void (*ended)(void *ctx, struct nk_process *p, const struct nk_err *err);
};

struct nk_interp_config {
    uv_loop_t *loop; /* all borrowed: outlive it */
    struct nk_registry *registry;
    const struct nk_interp_events *events; /* static */
    void *ctx;
};

/* `cmd` without the fields that are its own; `driver`: the text it is to run. 0, or -1 with err. */
int nk_interp_start(const struct nk_interp_config *cfg, const struct nk_command *cmd,
                    const char *driver, struct nk_interp **out, struct nk_err *err);
struct nk_process *nk_interp_process(struct nk_interp *i); /* borrowed */

void nk_interp_run(struct nk_interp *i, uint64_t number, const char *code, bool input);
void nk_interp_interrupt(struct nk_interp *i);
/* Interrupts, and kills for `why` if the run is not over in time. */
void nk_interp_end_run(struct nk_interp *i, enum nk_reason why);
void nk_interp_kill(struct nk_interp *i, enum nk_reason why);

#endif
