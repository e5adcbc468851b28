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
struct nk_cgroups;
struct nk_kernel;
struct nk_reaper;
struct nk_spawner;

#define NK_KEEP_ENDED 256

/* On whose account commands run: an identity, or the sandbox's own (the registry's, for NULL). */
struct nk_owner {
    struct nk_list link;    /* among all owners */
    struct nk_list running; /* records that hold a slot, oldest first */
    struct nk_list ended;   /* remembered records, the first ended first */
    struct nk_list held;    /* ended, outside the bound: somebody still answers from them */
    unsigned running_count;
    unsigned ended_count;
    unsigned held_count;
    size_t output_bytes; /* memory of ended records' outputs */
    uint64_t activity;   /* commands that began or ended, ever */
    bool uncounted;      /* the agent's own commands: not in the figures */
};

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

/* The self-test is over: whether marks show in /proc. Before any command is started. */
void nk_registry_use_marks(struct nk_registry *r, bool use);
/* After that; also where none could be made. `groups` outlives the registry. 0 or -ENOMEM. */
int nk_registry_use_groups(struct nk_registry *r, const struct nk_cgroups *groups);

/* A mark for a tree that is no command of the registry's, for as long as the registry lives; 0: there
 * is none. */
gid_t nk_registry_take_mark(struct nk_registry *r);

/* The range that marks of this registry lie in; count 0: there are none. */
void nk_registry_marks(const struct nk_registry *r, gid_t *out_first, unsigned *out_count);

/* The sandbox's own. */
struct nk_owner *nk_registry_own(struct nk_registry *r);

void nk_registry_add_owner(struct nk_registry *r, struct nk_owner *o /* borrowed until removed */);
void nk_registry_remove_owner(struct nk_registry *r, struct nk_owner *o); /* forgets its records */

/* By id, or by the name of a running one (else of the newest ended); NULL where the owner has none. */
struct nk_process *nk_registry_find(struct nk_registry *r, struct nk_owner *owner, const char *id);
/* Newest first, at most `max`: how many were written to `out` (borrowed pointers). */
size_t nk_registry_list(struct nk_registry *r, struct nk_owner *owner, bool running_only,
                        struct nk_process **out, size_t max);
size_t nk_registry_size(struct nk_registry *r, struct nk_owner *owner); /* records listed */
/* Kills what runs and forgets the record; watchers still see the end. */
void nk_registry_forget(struct nk_registry *r, struct nk_process *p);

/* KILL to the trees of all that runs on this account: they end as by somebody else's signal. Also to
 * what is left of ended ones. */
void nk_registry_kill_owner(struct nk_registry *r, const struct nk_owner *owner);
/* Whether there may be any such. */
bool nk_registry_may_live(const struct nk_registry *r, const struct nk_owner *owner);

/* Calls back (later, once) when it is known of every ended command whether something of it still
 * lives: `tree` of the records is then right. */
struct nk_settle {
    struct nk_list link;
    void (*fn)(struct nk_settle *s);
};
void nk_registry_settle(struct nk_registry *r, struct nk_settle *s);
void nk_registry_unsettle(struct nk_settle *s); /* no call any more */

/* Keeps an ended record and its whole results outside the bounds until as often let go. */
void nk_registry_hold(struct nk_process *p);
void nk_registry_unhold(struct nk_process *p);
size_t nk_registry_memory(const struct nk_process *p); /* of its outputs */

/* Freezes or wakes every command's tree, also what is left of ended ones. While paused starts are
 * NK_PAUSED and the commands' own clocks stand still. `done` comes later, once; rc 0 or -errno. One
 * at a time: NK_CONFLICT while another is under way. */
struct nk_pause {
    void (*done)(struct nk_pause *pause, int rc);
};
int nk_registry_pause(struct nk_registry *r, bool pause, struct nk_pause *p, struct nk_err *err);
bool nk_registry_is_paused(const struct nk_registry *r);
/* Either is under way, or not all could be stopped: then it can be asked for again. */
bool nk_registry_is_pausing(const struct nk_registry *r);
void nk_registry_unpause_wait(struct nk_registry *r, struct nk_pause *p); /* `done` is not called */

/* Ends everything, for `why`; `done` once nothing runs. New starts are refused: shutting_down. */
void nk_registry_end_all(struct nk_registry *r, enum nk_reason why, unsigned grace_ms,
                         void (*done)(void *ctx), void *ctx);

const struct nk_registry_stats *nk_registry_stats(const struct nk_registry *r);

#endif
