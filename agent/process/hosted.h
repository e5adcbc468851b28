/*
 * Commands without a process of their own: what an interpreter that stays (a resident command, the
 * carrier) runs, one at a time.
 *
 * The record of such a run is one like any other: log, results, watchers, input, timeout, a slot. What
 * the carrier and its children write belongs to the run that began last, also after its end, until
 * the next one begins. When the carrier ends by itself, its owner ends the run.
 *
 * Loop thread only.
 */
#ifndef NK_PROCESS_HOSTED_H
#define NK_PROCESS_HOSTED_H

#include "process/process.h"

/* Embedded by the carrier's owner; outlives every run that has not ended. */
struct nk_host {
    struct nk_process *carrier; /* borrowed: set by the owner; NULL: it does not run */
    /* The run is to be ended, for `why`; nk_hosted_end follows, later. */
    void (*end)(struct nk_host *h, struct nk_process *p, enum nk_reason why);
    void (*signal)(struct nk_host *h, struct nk_process *p, int signo, bool tree);
};

/* After nk_process_start gave it: the code is on its way to the carrier. STARTED comes at once. */
void nk_hosted_begin(struct nk_process *p);
/* It is over, with a status as of waitpid; all that belongs to it was drained. */
void nk_hosted_end(struct nk_process *p, int wait_status);
void nk_hosted_touch(struct nk_process *p); /* its owner has news for the watchers: OUTPUT */

/* Calls back once (perhaps at once) when all that is in the carrier's pipes now has been read, or
 * never where the carrier ends before. One at a time. */
struct nk_drain {
    void (*fn)(struct nk_drain *d);
};
void nk_hosted_drain(struct nk_process *carrier, struct nk_drain *d);
void nk_hosted_undrain(struct nk_process *carrier); /* no call any more */

#endif
