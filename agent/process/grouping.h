/*
 * Which trees have a control group of their own: those that have lived for a moment, and all of them
 * while paused.
 *
 * Private to process/. Owned by the registry; loop thread but for its job.
 */
#ifndef NK_PROCESS_GROUPING_H
#define NK_PROCESS_GROUPING_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/job.h"
#include "process/cgroups.h"
#include "process/oom.h"

struct nk_registry;
struct nk_process;

struct nk_grouping {
    const struct nk_cgroups *groups; /* borrowed: outlives the registry; NULL: there are none */
    struct nk_oom oom;
    uint8_t *state; /* owned; a byte a mark */
    uint8_t *due;   /* owned; the job's: 1 into its group, 2 the group is to go */
    uv_timer_t timer;
    struct nk_job job;
    bool busy;
};

void nk_grouping_open(struct nk_registry *r); /* its timer, which the registry closes */
/* The self-test is over: open or not, and not to be changed any more. 0 or -ENOMEM. */
int nk_grouping_use(struct nk_registry *r, const struct nk_cgroups *groups);
void nk_grouping_free(struct nk_grouping *g);

void nk_grouping_started(struct nk_process *p);           /* a tree is there */
void nk_grouping_gone(struct nk_registry *r, gid_t mark); /* nothing of it lives any more */
void nk_grouping_all(struct nk_registry *r);              /* a job has put every tree into one */

/* Its group, for a kill; NULL: it has none. */
const struct nk_cgroups *nk_grouping_of(const struct nk_process *p);

/* It or its shell ended as one killed, and nobody of us did it: whether for want of memory. */
bool nk_grouping_oom(struct nk_process *p);

#endif
