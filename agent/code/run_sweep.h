/*
 * Removes the private folders that an agent which was killed could not: once, at the start.
 *
 * Takes only folders of the user's own that bear such a name, are older than this start, and that no
 * agent which is alive holds (several may share a folder for temporary files). Never follows a link.
 * Embedded by its owner, which must stay until it is over; a task with the user's rights.
 */
#ifndef NK_CODE_RUN_SWEEP_H
#define NK_CODE_RUN_SWEEP_H

#include <dirent.h>
#include <time.h>

#include "base/creds.h"
#include "code/run_folder.h"
#include "files/task.h"

struct nk_run_sweep {
    struct nk_task task;
    void (*over)(struct nk_run_sweep *s); /* set after the start, or NULL; may free the owner */
    const char *const *tops;              /* borrowed: outlives it; those that are left */
    struct nk_creds creds;
    struct timespec since;
    DIR *dir; /* owned: of the first of `tops` */
    struct nk_run_folder folder;
};

/* `tops` is NULL-ended. `as`: NULL where the agent is the user. */
void nk_run_sweep_start(struct nk_run_sweep *s, struct nk_jobs *jobs, const char *const *tops,
                        const struct nk_creds *as);
void nk_run_sweep_stop(struct nk_run_sweep *s); /* also of one that was not started, or is over */

#endif
