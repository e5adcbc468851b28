/*
 * The state folder: the map of identities, their workspaces below `w/UID`, and a lock that tells
 * whether another daemon lives on the same folder.
 *
 * Made at start, as root. Users may pass through it to their own workspace, and list nothing. Blocking;
 * owned by the tenants.
 */
#ifndef NK_TENANT_STATE_H
#define NK_TENANT_STATE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/creds.h"
#include "base/err.h"

struct nk_state {
    int dir; /* owned, all three */
    int workspaces;
    int lock;
    bool alone; /* no other daemon lived on it when the lock was taken */
};

/* What every workspace has, and keeps: NULL-ended. */
extern const char *const nk_state_folders[];

/* 0, or -1 with err and nothing open. */
int nk_state_open(const char *path, struct nk_state *out, struct nk_err *err);
void nk_state_close(struct nk_state *s); /* one that was never opened is zeroed, with -1 inside */

/* Takes the lock for us alone, if it can at once: `alone` tells. */
void nk_state_try_alone(struct nk_state *s);
/* Others may live on it from now on. Waits until one that tidies up is done. 0 or -errno. */
int nk_state_share(const struct nk_state *s);

/* The workspace w/UID, 0700, with files, out and tmp: made whole or not at all; what is there and is
 * the user's is left as it is. */
int nk_state_workspace(const struct nk_state *s, const struct nk_creds *as, struct nk_err *err);
bool nk_state_has(const struct nk_state *s, uid_t uid); /* such a workspace */
void nk_state_tidy(
    const struct nk_state *s); /* workspaces that a crash left half made; only alone */

#endif
