/*
 * One file, folder or link as answers show it.
 *
 * A value, filled on a pool thread; `path` and `name` are borrowed from whoever filled it.
 */
#ifndef NK_FILES_ENTRY_H
#define NK_FILES_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/err.h"
#include "files/place.h"

/* Names of a uid and a gid; remembers the last ones. A zeroed struct knows none yet. */
struct nk_owners {
    bool known_uid;
    bool known_gid;
    uid_t uid;
    gid_t gid;
    char owner[64]; /* the number as text where there is no name */
    char group[64];
};

struct nk_entry {
    const char *path; /* borrowed */
    const char *name; /* borrowed */
    struct stat st;
    char target[NK_PLACE_PATH_MAX]; /* of a link */
    size_t target_len;
    const struct nk_owners *owners; /* borrowed: names of st.st_uid and st.st_gid */
};

/* Reads /etc/passwd and /etc/group when an id is not the one of the call before. */
void nk_entry_learn_owners(struct nk_owners *o, uid_t uid, gid_t gid);

/* `st` is of `name` in `dir`, not followed. */
void nk_entry_fill(struct nk_entry *e, int dir, const char *name, const struct stat *st,
                   struct nk_owners *owners);
/* What lies at the place now. 0, or -1 with err. */
int nk_entry_at(struct nk_entry *e, const struct nk_place *place, struct nk_owners *owners,
                struct nk_err *err);

const char *nk_entry_type(mode_t mode); /* file, dir, symlink, other */

#endif
