/*
 * What uids have left behind outside of any workspace: files in shared folders, shared memory,
 * semaphores and message queues. Removed before a uid is given out, so that nobody finds, or is
 * tripped by, what is another one's.
 *
 * Cut into slices (files/task.h style): each call goes on until its time is over. Blocking, on pool
 * threads, as root; a link is never followed, and only what belongs to one of the uids is touched.
 */
#ifndef NK_TENANT_SWEEP_H
#define NK_TENANT_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#include "process/tree.h"

struct nk_walk;

struct nk_sweep {
    const char *const
        *folders; /* borrowed, NULL-ended: those that others may not write to are left */
    const struct nk_uid_set *uids; /* borrowed */
    size_t at;
    struct nk_walk *walk; /* owned */
    uint64_t removed;
};

/* 1: `until_ns` came first, 0: it is done. What cannot be removed is given to root. */
int nk_sweep_go(struct nk_sweep *s, uint64_t until_ns);
void nk_sweep_fini(struct nk_sweep *s);

/* System V objects of these uids. How many were removed. */
unsigned nk_sweep_ipc(const struct nk_uid_set *uids);

#endif
