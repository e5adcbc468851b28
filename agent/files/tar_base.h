/*
 * What a client wants to have packed: places, and the names they have in the archive.
 *
 * Names are relative to a base folder: the one asked for, else the working directory for what lies in
 * it, else the root of the file system. Everything is looked at before the first byte is sent, so
 * that what is missing is an error and not half an archive.
 *
 * Blocking; with the user's rights. A zeroed struct is a valid empty one.
 */
#ifndef NK_FILES_TAR_BASE_H
#define NK_FILES_TAR_BASE_H

#include <stddef.h>

#include "base/err.h"
#include "files/place.h"
#include "files/roots.h"
#include "files/tar_name.h"

#define NK_TAR_BASE_PATHS 64 /* in one archive; each holds a descriptor meanwhile */

struct nk_tar_wanted {
    struct nk_place place;
    char name[NK_TAR_NAME_MAX + 2];
};

struct nk_tar_base {
    struct nk_tar_wanted *item; /* owned */
    size_t count;
};

/* `paths` is NULL-ended; `base` may be NULL. 0, or -1: NK_NOT_FOUND, NK_FORBIDDEN, NK_BAD_PATH. */
int nk_tar_base_find(struct nk_tar_base *out, const struct nk_roots *roots,
                     const char *const *paths, const char *base, struct nk_err *err);
void nk_tar_base_fini(struct nk_tar_base *b);

#endif
