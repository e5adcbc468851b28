/*
 * All identities of the sandbox: from a name to a uid, a workspace and an account of its own.
 *
 * A name is known by its SHA-256 only. The first time it is asked for in a daemon's life a job finds
 * its uid in the map on disk (uid_map.h), or writes a new one, and sees to its workspace; from then on
 * it is found at once. Before the first is opened, what a daemon before us left running is killed, and
 * what uids without a workspace left behind is removed.
 *
 * Owned by app. Loop thread only, but for what is said to be blocking.
 */
#ifndef NK_TENANT_TENANTS_H
#define NK_TENANT_TENANTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/list.h"
#include "tenant/tenant.h"

struct nk_jobs;
struct nk_kernel;
struct nk_registry;

struct nk_tenants_config {
    struct nk_jobs *jobs; /* all borrowed: outlive the tenants */
    struct nk_registry *registry;
    const struct nk_kernel *kernel;
    const char *state_dir;
    const char *const *shared; /* NULL-ended: folders where users may leave something */
    uid_t uid_first, uid_last;
    gid_t mark_first, mark_last;
    uint64_t quota_bytes, quota_files; /* of each; 0: no bound */
    /* One was opened, and nobody was told of it yet. NULL: that matters to nobody. */
    void (*on_open)(struct nk_tenant *tenant, void *ctx);
    void *ctx;
};

/* Blocking. Fails where the folder or the map cannot be used. Without root nothing is opened; then no
 * identity can be isolated, and none is asked for. */
int nk_tenants_open(const struct nk_tenants_config *cfg, struct nk_tenants **out,
                    struct nk_err *err);
/* Nobody asks any more, no job runs; the owners were removed from the registry. */
void nk_tenants_close(struct nk_tenants **slot);

/* Blocking, in the self-test's job, after the rest of it and before any command: whether identities
 * can be isolated here is written to `kernel`, the job's own; what ran before us is killed. */
void nk_tenants_try(struct nk_tenants *t, struct nk_kernel *kernel);
/* After it: the shared folders are swept, in jobs; who asks meanwhile waits. */
void nk_tenants_begin(struct nk_tenants *t);
void nk_tenants_stop(struct nk_tenants *t); /* no more are opened; NULL is fine */
/* Whether any could have been opened. NULL is fine: none could. */
bool nk_tenants_are_ready(const struct nk_tenants *t);
/* Blocking, at the end, once they are ready: kills whatever the identities of this life still run. */
void nk_tenants_kill(struct nk_tenants *t);

struct nk_tenant_ask {
    struct nk_list link;
    /* Later, once: the tenant, or NULL with err. */
    void (*told)(struct nk_tenant_ask *ask, struct nk_tenant *tenant, const struct nk_err *err);
};

/* One that is open already, or NULL. */
struct nk_tenant *nk_tenants_find(struct nk_tenants *t, const uint8_t digest[32]);
int nk_tenants_ask(struct nk_tenants *t, const uint8_t digest[32], struct nk_tenant_ask *ask,
                   struct nk_err *err);           /* 0: `told` follows, or -1: it does not */
void nk_tenants_leave(struct nk_tenant_ask *ask); /* is not told any more */

#endif
