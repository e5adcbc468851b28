/*
 * One identity, as the rooms above need it: on whose account its commands run, as whom, and where its
 * files lie. Made when it is first named, and then there until the daemon ends, so that what is bound
 * to it (records, tokens, keys) may point to it.
 *
 * Owned by the tenants (tenants.h); loop thread only, but for the roots and the user, which jobs read.
 */
#ifndef NK_TENANT_TENANT_H
#define NK_TENANT_TENANT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/job.h"
#include "base/list.h"
#include "process/registry.h"
#include "process/userdb.h"
#include "tenant/quota.h"

struct nk_roots;
struct nk_tenants;

struct nk_tenant {
    struct nk_owner owner;
    struct nk_user user;
    char *workspace;          /* owned, as are the next two: w/UID, its only root */
    char *out;                /* where code leaves images */
    char *tmp;                /* TMPDIR */
    const char *temp_dirs[3]; /* NULL-ended: the same and the workspace */
    const char *places[2];    /* NULL-ended: the workspace */
    struct nk_roots *roots;   /* owned */
    struct nk_quota quota;

    /* the tenants' own */
    struct nk_list bucket;
    struct nk_tenants *all; /* borrowed: the owner */
    uint8_t digest[32];
    struct nk_job job;
    struct nk_list waiting; /* asks, while it is being opened */
    struct nk_err err;
    bool open;
};

/* NULL (the sandbox's own) has no tenant. */
static inline struct nk_tenant *nk_tenant_of(struct nk_owner *owner)
{
    return owner ? NK_CONTAINER_OF(owner, struct nk_tenant, owner) : NULL;
}

#endif
