/*
 * The inside of the tenants, shared by tenants.c and tenants_start.c. Private to tenant/.
 */
#ifndef NK_TENANT_TENANTS_PRIVATE_H
#define NK_TENANT_TENANTS_PRIVATE_H

#include "files/task.h"
#include "tenant/state.h"
#include "tenant/sweep.h"
#include "tenant/tenants.h"

#define NK_TENANTS_BUCKETS 1024
#define NK_TENANTS_KILL_MS 10000

struct nk_tenants {
    struct nk_tenants_config cfg;
    struct nk_state state;
    struct nk_list bucket[NK_TENANTS_BUCKETS];
    struct nk_list early; /* asked for before the sweep was over: nk_tenant.job.link */
    unsigned count;       /* uids of the range */
    uint8_t *barred;      /* owned, a byte a uid: somebody runs as it whom we do not know */
    uint8_t *swept;       /* owned, likewise: what it left is removed; only while the sweep runs */
    struct nk_uid_set set;
    struct nk_sweep sweep;
    struct nk_task task;
    bool ready; /* the sweep is over */
    bool stopped;
};

/* tenants.c: those that had to wait. */
void nk_tenants_go_on(struct nk_tenants *t);

#endif
