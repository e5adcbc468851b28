/*
 * From a client's string to a place: a descriptor of the folder that it lies in, and one name.
 *
 * Every path that came from a client goes through here, and no other file opens such a string. The
 * walk goes from a root's descriptor, one component at a time, never following a link; links inside
 * the roots are read and resolved here (at most 40), absolute ones from a root again. So nothing
 * that another process swaps on the way can lead out. `..` goes back by walking anew to what was
 * walked before, so that no descriptors pile up. openat2 is only a shortcut for the link-free case.
 *
 * Blocking; on a pool thread that has the user's rights. No state but the result.
 */
#ifndef NK_FILES_PATH_H
#define NK_FILES_PATH_H

#include <stddef.h>

#include "base/err.h"
#include "files/place.h"
#include "files/roots.h"

#define NK_PATH_LINKS_MAX 40

enum nk_path_flag {
    NK_PATH_WRITE = 1,   /* it must lie in a writable root */
    NK_PATH_FOLLOW = 2,  /* a link in the last place is resolved; else it is the place itself */
    NK_PATH_NO_LINK = 4, /* a link in the last place is refused */
    NK_PATH_PARENTS = 8, /* missing folders on the way are made, 0755 */
};

/* Nothing needs to be at the place itself. 0, or -1: NK_BAD_PATH (`..` that leaves, NUL, too long,
 * not a folder, too many links), NK_FORBIDDEN (outside of the roots, no right), NK_NOT_FOUND (a
 * folder on the way is missing). */
int nk_path_resolve(const struct nk_roots *roots, const char *path, size_t len, unsigned flags,
                    struct nk_place *out, struct nk_err *err);

/* Removes the folders that were made for this place, as far as they are empty. */
void nk_path_unmake(const struct nk_roots *roots, struct nk_place *place);

#endif
