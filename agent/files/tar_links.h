/*
 * Files with several names that were packed already: which name stands for each.
 *
 * Bounded: a file beyond NK_TAR_LINKS_BYTES is packed again as a file of its own, which is never
 * wrong, only larger. A zeroed struct is a valid empty one.
 */
#ifndef NK_FILES_TAR_LINKS_H
#define NK_FILES_TAR_LINKS_H

#include <stddef.h>
#include <sys/stat.h>

#include "base/buf.h"

#define NK_TAR_LINKS_BYTES (32u * 1024u * 1024u) /* of their names */

struct nk_tar_linked;

struct nk_tar_links {
    struct nk_tar_linked *slot; /* owned: open addressing, a power of two */
    size_t count, cap;
    struct nk_buf names; /* owned */
};

/* The name that this file was packed under, borrowed until the next call; NULL: it was not yet, and
 * is remembered under `name` if there is room. */
const char *nk_tar_links_seen(struct nk_tar_links *l, const struct stat *st, const char *name);
void nk_tar_links_fini(struct nk_tar_links *l);

#endif
