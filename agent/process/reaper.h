/*
 * The only place that waits for children.
 *
 * Reaps every child, ours and orphans handed to us (process 1 or subreaper), on SIGCHLD, with one
 * waitpid(-1) loop; tells the owner of a pid. The status of a child that ends before its start is told
 * is kept in the start; unknown pids are orphans and are only counted. Owned by app; loop thread
 * only. A pid is not used after it was reaped.
 */
#ifndef NK_PROCESS_REAPER_H
#define NK_PROCESS_REAPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <uv.h>

#include "base/list.h"

struct nk_reaper;

struct nk_reaper_watch; /* embedded by the owner of a pid */
typedef void (*nk_reaped_fn)(struct nk_reaper_watch *w, int wait_status,
                             const struct rusage *usage);

struct nk_reaper_watch {
    pid_t pid;
    nk_reaped_fn fn;
    struct nk_reaper_watch *next; /* the reaper's own */
};

/* A start under way; embedded by the starter (spawn.c). The kernel writes the pid before the child
 * runs (CLONE_PARENT_SETTID), from whatever thread. */
struct nk_reaper_start {
    struct nk_list link;
    _Atomic pid_t pid;
    bool reaped; /* before its owner could watch; what follows is valid then */
    int wait_status;
    struct rusage usage;
};

/* SIGCHLD is blocked in the calling thread from here on, and must be in every other: open it before
 * any thread is made. */
int nk_reaper_open(uv_loop_t *loop, struct nk_reaper **out);
void nk_reaper_close(struct nk_reaper **slot);

/* Orphans below us become our children (subreaper), as they are process 1's anyway. Not called
 * under `--without subreaper`. 0 or -errno. */
int nk_reaper_adopt(struct nk_reaper *r);

bool nk_reaper_adopts(const struct nk_reaper *r); /* orphans come to us */

/* `w->fn` is called once, never from within this call. For a child that nk_spawn_start started it
 * is called in `done` or never: once `done` is over an early end is told to who watches. */
void nk_reaper_watch(struct nk_reaper *r, struct nk_reaper_watch *w);
void nk_reaper_forget(struct nk_reaper *r, struct nk_reaper_watch *w);

/* The starter: before the clone; when the start is over; and after its owner was told. The last
 * takes a copy, since the owner may have freed the start. */
void nk_reaper_expect(struct nk_reaper *r, struct nk_reaper_start *start);
void nk_reaper_settle(struct nk_reaper *r, struct nk_reaper_start *start);
void nk_reaper_deliver(struct nk_reaper *r, const struct nk_reaper_start *start);

/* Takes the end of a throw-away child of the self-test, which was started without an exit signal
 * and is therefore no part of a pass. Blocking. Its exit status, or -1 when a signal ended it. */
int nk_reaper_take_probe(pid_t pid);

/* The last wait said ECHILD and nothing was started since: no process of any user is alive (every
 * orphan below us would be our child). Only true where orphans come to us. */
bool nk_reaper_childless(const struct nk_reaper *r);
/* Told after every pass that reaped something; for those who watch trees. */
void nk_reaper_on_pass(struct nk_reaper *r, void (*fn)(void *ctx), void *ctx);
uint64_t nk_reaper_count(const struct nk_reaper *r); /* children ever reaped */

#endif
