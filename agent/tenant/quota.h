/*
 * What an identity may keep (or the sandbox's own user): bytes and files, and how much of it is used.
 *
 * No help of the file system is needed. What the agent writes itself is held before it is written, and
 * so known exactly; what commands do is found out by counting (tally.h), when somebody wants to know:
 * before something new is let in, if a command has begun or ended since the last count, or may have
 * written meanwhile. A count that takes long comes less often: a tree that is large is not walked for
 * every request, and what is known of it is a little old then. Nothing is kept on disk, so nothing is
 * wrong after a crash.
 *
 * Embedded by its owner, which must stay until no count runs. Loop thread only; counts are tasks.
 */
#ifndef NK_TENANT_QUOTA_H
#define NK_TENANT_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "files/task.h"
#include "tenant/tally.h"

#define NK_QUOTA_CHEAP_MS 50 /* a count that takes no longer comes as often as it is needed */
#define NK_QUOTA_SHARE 20    /* of the time between two others, one part is a count */
#define NK_QUOTA_ENOUGH_BYTES (UINT64_C(1) << 30) /* more than twice the bound: a count stops */
#define NK_QUOTA_ENOUGH_FILES 1000000u
#define NK_QUOTA_REST_MS 1000 /* between two counts while commands just run */

struct nk_jobs;
struct nk_owner;

struct nk_quota_ask {
    struct nk_list link;
    void (*told)(struct nk_quota_ask *ask); /* later: what is used is known now */
};

struct nk_quota_config {
    struct nk_jobs *jobs;         /* all borrowed: outlive the quota */
    const struct nk_owner *owner; /* whose commands write */
    const struct nk_roots *roots; /* where they write */
    const char *const *free;      /* top folders that do not count */
    const void *share;            /* of jobs */
    bool of_one;                  /* only what is `uid`'s */
    uid_t uid;
    uint64_t max_bytes, max_files; /* 0: no bound */
};

struct nk_quota {
    struct nk_quota_config cfg;
    uint64_t bytes, files;            /* as they were counted, and what was added since */
    uint64_t held_bytes, held_files;  /* of what is being written */
    bool credited;                    /* one holder may write beside what it will replace */
    bool known;                       /* there was a count */
    bool changed;                     /* since the count began, by what is not known exactly */
    uint64_t activity, next_activity; /* the owner's, when the last count began, and this one */
    uint64_t began_ms, ended_ms;
    uint64_t cost_ns, next_cost_ns; /* of processor time: of the last count, and this one */
    unsigned rounds;
    uint64_t kept_bytes, kept_files; /* added while the count ran, which may not have seen it */
    struct nk_list asks;
    struct nk_list holders;
    struct nk_list watched; /* quota_watch.h's */
    struct nk_quota_ask watch_ask;
    struct nk_tally_file *skip; /* owned, while a count runs */
    struct nk_tally tally;
    struct nk_task task;
};

void nk_quota_init(struct nk_quota *q, const struct nk_quota_config *cfg);
static inline bool nk_quota_is_set(const struct nk_quota *q)
{
    return q->cfg.max_bytes || q->cfg.max_files;
}
void nk_quota_stop(struct nk_quota *q); /* no count goes on */

/* True: it is known as well as need be. False: `told` comes, once and not from within. */
bool nk_quota_know(struct nk_quota *q, struct nk_quota_ask *ask);
void nk_quota_leave(
    struct nk_quota_ask *ask); /* not told any more; one that never asked is zeroed */

/* NK_QUOTA_EXCEEDED where more is used than may be. */
int nk_quota_check(const struct nk_quota *q, struct nk_err *err);
/* The room that is left; UINT64_MAX where there is no bound. */
uint64_t nk_quota_bytes_left(const struct nk_quota *q);
uint64_t nk_quota_files_left(const struct nk_quota *q);
/* Something was done whose sum is not known. */
void nk_quota_note(struct nk_quota *q);

/* One that writes: holds room bit by bit, then keeps or gives it back. Zeroed: no quota. */
struct nk_holder {
    struct nk_quota *quota;    /* borrowed; NULL: none */
    struct nk_list link;       /* among the quota's */
    uint64_t bytes, files;     /* held */
    struct nk_tally_file file; /* what it writes to */
    bool writes;
    uint64_t credit; /* bytes of what will be replaced */
    bool credited;
    uint64_t since_ms;
};

void nk_holder_init(struct nk_holder *h, struct nk_quota *q);
void nk_holder_file(struct nk_holder *h, const struct nk_tally_file *file);
void nk_holder_credit(struct nk_holder *h, uint64_t bytes);
int nk_holder_take(struct nk_holder *h, uint64_t bytes, uint64_t files, struct nk_err *err);
/* It is written: `bytes` and `files` more than before stay (the old ones of what was replaced go). */
void nk_holder_keep(struct nk_holder *h, uint64_t bytes, uint64_t files, uint64_t gone_bytes);
void nk_holder_drop(struct nk_holder *h); /* nothing stays; may be repeated */

#endif
