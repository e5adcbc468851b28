/*
 * How long a job that moves bytes may stay with one peer before it goes back to the loop.
 *
 * Made on the loop, used up by the job that it was made for. While half of the pool has work, a job
 * does not wait for its peer at all and moves little, so that short jobs come between.
 */
#ifndef NK_BASE_PATIENCE_H
#define NK_BASE_PATIENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct nk_jobs;

struct nk_patience {
    unsigned waits; /* that are left */
    uint64_t bytes; /* to move at most */
};

struct nk_patience nk_patience_of(const struct nk_jobs *jobs);

/* Waits a moment for `events` of poll; false: there were none, or no wait is left. */
bool nk_patience_wait(struct nk_patience *p, int fd, short events);
/* As read, of a non-blocking `fd` that is waited for. */
ssize_t nk_patience_read(struct nk_patience *p, int fd, void *out, size_t len);

#endif
