/*
 * Users and groups, read from /etc/passwd and /etc/group by our own parser: no NSS is ever loaded.
 *
 * Blocking (two small files); called at start and from jobs. Plain values.
 */
#ifndef NK_PROCESS_USERDB_H
#define NK_PROCESS_USERDB_H

#include <stdbool.h>

#include "base/creds.h"
#include "base/err.h"

struct nk_user {
    struct nk_creds creds; /* with the groups that /etc/group gives this name */
    char name[64];         /* the number as text where passwd has no entry */
    char home[256];        /* "/" where passwd has none */
    char shell[256];       /* "/bin/sh" where passwd has none */
};

/* "NAME", "UID" or "UID:GID"; a uid without an entry gets a group of its own number, never 0 (but
 * uid 0). NK_NOT_FOUND for an unknown name. `root_dir` is "/" but for tests. */
int nk_userdb_find(const char *root_dir, const char *spec, struct nk_user *out, struct nk_err *err);

#endif
