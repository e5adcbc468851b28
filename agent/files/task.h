/*
 * Work on files that may take long, cut into slices: each is a job of bounded time, so that a large
 * tree never holds a pool thread while others wait.
 *
 * Embedded by its owner, which must stay until `over` was called. `slice` and `undo` run on a pool
 * thread with the user's rights and touch nothing but the owner's struct; everything else is on the
 * loop.
 */
#ifndef NK_FILES_TASK_H
#define NK_FILES_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/job.h"

#define NK_TASK_MORE 1

struct nk_task {
    struct nk_job job;
    struct nk_jobs *jobs; /* borrowed: outlives it */
    /* 0: finished, -1: failed with t->err, NK_TASK_MORE: it wants another slice. */
    int (*slice)(struct nk_task *t);
    /* After a failure or a stop, in slices too: takes back what was begun. NULL: nothing is left. */
    int (*undo)(struct nk_task *t);
    void (*over)(struct nk_task *t); /* exactly once a start; may free the owner */
    struct nk_err err;
    int result; /* 0 or -1, when it is over */
    uint64_t until_ns;
    bool running;
    bool stopped;
    bool undoing;
};

/* `as` and `share` as in base/job.h. A task that is over may be started again. */
void nk_task_start(struct nk_task *t, struct nk_jobs *jobs, const struct nk_creds *as,
                   const void *share);
/* No more slices begin; `over` comes with an error, unless it is just finishing. */
void nk_task_stop(struct nk_task *t);

/* In a slice: its time is over. */
bool nk_task_due(const struct nk_task *t);

#endif
