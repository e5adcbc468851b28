/*
 * Blocking work, done by a fixed pool of eight threads and handed back on the loop.
 *
 * The owner fills the struct that embeds the job, on the loop; `work` runs on a pool thread and
 * touches nothing but that struct; `done` runs on the loop and owns the struct again. No locks in
 * rooms: what two threads need is handed over.
 *
 * With `as`, the thread has that user's effective uid, gid and groups while `work` runs (raw system
 * calls, this thread only), so the kernel judges the work as it judges the user's own commands.
 * A failed switch back ends the daemon: a pool thread with the wrong rights cannot go on.
 *
 * One `share` (an identity, or NULL for the sandbox's own) has at most half of the pool at a time;
 * the rest of its jobs queue in order, and shares take turns. NULL may have more while no other
 * share waits. NK_JOB_URGENT threads are for urgent jobs alone: those that touch no disk of a user,
 * which may never answer, and that all else relies on. They have a queue of their own.
 */
#ifndef NK_BASE_JOB_H
#define NK_BASE_JOB_H

#include <stdbool.h>
#include <uv.h>

#include "base/creds.h"
#include "base/list.h"

#define NK_JOB_THREADS 8
#define NK_JOB_URGENT 2

struct nk_jobs;

struct nk_job {
    void (*work)(struct nk_job *job);
    void (*done)(struct nk_job *job, bool canceled); /* canceled: work never ran */
    const struct nk_creds *as;                       /* borrowed until done; NULL: as the daemon */
    const void *share;                               /* borrowed: a key, never looked into */
    bool urgent;
    int switch_errno; /* set when `as` could not be taken: work did not run, done is called */
    /* the pool's own */
    struct nk_jobs *jobs;
    struct nk_list link;
    struct nk_list rest; /* of the first waiting job of a share: the others */
    bool queued;         /* waits for its turn */
    bool skip;           /* canceled while it waited */
    uv_work_t req;
};

/* NK_JOB_THREADS is applied before the first job (UV_THREADPOOL_SIZE). -errno or 0. */
int nk_jobs_new(uv_loop_t *loop, struct nk_jobs **out);
void nk_jobs_free(struct nk_jobs *jobs); /* no job may be running */

/* `done` is always called later, exactly once. The zeroed parts of the struct need no init. */
void nk_job_submit(struct nk_jobs *jobs, struct nk_job *job);
void nk_job_cancel(struct nk_job *job); /* if it has not begun */
unsigned nk_jobs_active(const struct nk_jobs *jobs);

/* Takes and gives back effective ids on the calling thread, for the self-test. 0 or -errno;
 * switching back aborts on failure. */
int nk_job_become(const struct nk_creds *as);
void nk_job_restore(void);

#endif
