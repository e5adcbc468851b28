/*
 * Which uid an identity has: a file in the state folder that only grows.
 *
 * A record of fixed length for each identity: the SHA-256 of its name, and the uid. It is written at
 * once and flushed before the uid is used. A record that was cut short by a crash was never used,
 * and is cut off. Every access holds the file's lock, so that several daemons may share it. Damage
 * anywhere else is an error, never a new uid.
 *
 * Blocking; on any thread. Owns nothing.
 */
#ifndef NK_TENANT_UID_MAP_H
#define NK_TENANT_UID_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define NK_UID_MAP_FILE "identities"
#define NK_UID_MAP_MAX (1u << 20) /* uids of a range */

struct nk_uid_map {
    int dir; /* borrowed: the state folder */
    uid_t first;
    unsigned count;
    /* Whether a uid that nobody has may be given out; NULL: all may. */
    bool (*may_take)(uid_t uid, void *ctx);
    void *ctx; /* borrowed */
};

/* The identity's uid, a new one where it has none yet. NK_OVERLOADED: none is left. */
int nk_uid_map_take(const struct nk_uid_map *m, const uint8_t digest[32], uid_t *out_uid,
                    struct nk_err *err);

/* Sets a byte for every uid of the range that was given out. */
int nk_uid_map_used(const struct nk_uid_map *m, uint8_t *used, struct nk_err *err);

#endif
