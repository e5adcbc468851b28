/*
 * Looks after quotas while commands run: one that fills the disk is ended before it has filled it.
 *
 * Once a second, as long as a command of somebody who has a quota runs, or what it left in the
 * background, what is kept is counted (as seldom as the count is dear, quota.h). Where it is more
 * than twice what may be, or a good deal more, that one's commands are killed. Whoever is just
 * beyond may end what it does, and then begins nothing.
 *
 * Owned by app; loop thread only.
 */
#ifndef NK_TENANT_QUOTA_WATCH_H
#define NK_TENANT_QUOTA_WATCH_H

#include <uv.h>

#include "base/list.h"

#define NK_QUOTA_WATCH_MS 1000
#define NK_QUOTA_BEYOND (UINT64_C(256) << 20) /* bytes more than may be kept: killed */

struct nk_quota;
struct nk_quota_watch;
struct nk_registry;

int nk_quota_watch_open(uv_loop_t *loop, struct nk_registry *registry /* borrowed: outlives it */,
                        struct nk_quota_watch **out);    /* 0 or -errno */
void nk_quota_watch_close(struct nk_quota_watch **slot); /* memory goes later */

/* A command of that account begins. It must stay until its commands are over. */
void nk_quota_watch_add(struct nk_quota_watch *w, struct nk_quota *q);

#endif
