/*
 * All commands of the sandbox: found by id or name, counted, remembered for a while, forgotten.
 *
 * Owns every record it lists. Running commands of an owner are bounded by `max_commands`; of the
 * ended ones the newest NK_KEEP_ENDED an owner stay, their outputs together at most `log_total`
 * (the oldest lose their output first). Loop thread only; owned by app.
 */
#ifndef NK_PROCESS_REGISTRY_H
#define NK_PROCESS_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "process/process.h"

struct nk_jobs;
struct nk_kernel;
struct nk_reaper;
struct nk_spawner;

#define NK_KEEP_ENDED 256

struct nk_registry_config {
    uv_loop_t *loop;
    struct nk_jobs *jobs; /* all borrowed: outlive the registry */
    struct nk_spawner *spawner;
    struct nk_reaper *reaper;
    const struct nk_kernel *kernel;
    unsigned max_commands;
    size_t log_total;
    gid_t mark_first, mark_last; /* first 0: no marks (not root) */
};

struct nk_registry_stats {
    unsigned running; /* hold a slot */
    unsigned ended;   /* remembered */
    uint64_t started, failed, exited, killed, timed_out;
    uint64_t bytes_read;
};

int nk_registry_open(const struct nk_registry_config *cfg, struct nk_registry **out);
/* Every command must have ended (nk_registry_end_all). Memory goes when handles are closed. */
void nk_registry_close(struct nk_registry **slot);

/* By id, or by the name of a running one (else of the newest ended); NULL where the owner has none. */
struct nk_process *nk_registry_find(struct nk_registry *r, const void *owner, const char *id);
/* Newest first; `p` NULL starts. */
struct nk_process *nk_registry_prev(struct nk_registry *r, const void *owner, struct nk_process *p);
/* Kills what runs and forgets the record; watchers still see the end. */
void nk_registry_forget(struct nk_registry *r, struct nk_process *p);

/* Ends everything, for `why`; `done` once nothing runs. New starts are refused: shutting_down. */
void nk_registry_end_all(struct nk_registry *r, enum nk_reason why, unsigned grace_ms,
                         void (*done)(void *ctx), void *ctx);

unsigned nk_registry_running(const struct nk_registry *r, const void *owner);
const struct nk_registry_stats *nk_registry_stats(const struct nk_registry *r);

#endif
