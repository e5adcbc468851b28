/*
 * The only place that waits for children.
 *
 * Reaps every child, ours and orphans handed to us (process 1 or subreaper), on SIGCHLD, with one
 * waitpid(-1) loop; tells the owner of a pid. A child that ends before its pid is known to us is
 * kept until it is claimed. Owned by app; loop thread only. A pid is not used after it was reaped.
 */
#ifndef NK_PROCESS_REAPER_H
#define NK_PROCESS_REAPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <uv.h>

struct nk_reaper;

struct nk_reaper_watch; /* embedded by the owner of a pid */
typedef void (*nk_reaped_fn)(struct nk_reaper_watch *w, int wait_status,
                             const struct rusage *usage);

struct nk_reaper_watch {
    pid_t pid;
    nk_reaped_fn fn;
    struct nk_reaper_watch *next; /* the reaper's own */
};

int nk_reaper_open(uv_loop_t *loop, struct nk_reaper **out);
void nk_reaper_close(struct nk_reaper **slot);

/* `w->fn` is called once, never from within this call: also where the child was already reaped. */
void nk_reaper_watch(struct nk_reaper *r, struct nk_reaper_watch *w);
void nk_reaper_forget(struct nk_reaper *r, struct nk_reaper_watch *w);

/* A start is under way whose pid we do not know yet: unknown pids are kept, not thrown away. */
void nk_reaper_expect(struct nk_reaper *r, int delta);

/* The last wait said ECHILD and nothing was started since: no process of any user is alive (every
 * orphan below us would be our child). Only true where orphans come to us. */
bool nk_reaper_childless(const struct nk_reaper *r);
/* Told after every pass that reaped something; for those who watch trees. */
void nk_reaper_on_pass(struct nk_reaper *r, void (*fn)(void *ctx), void *ctx);
uint64_t nk_reaper_count(const struct nk_reaper *r); /* children ever reaped */

#endif
