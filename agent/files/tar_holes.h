/*
 * Where a file has bytes and where it has holes, as the file system tells it.
 *
 * Blocking; no state.
 */
#ifndef NK_FILES_TAR_HOLES_H
#define NK_FILES_TAR_HOLES_H

#include <stddef.h>
#include <sys/stat.h>

#include "files/tar_worker.h"

#define NK_TAR_HOLES_MAX 4096 /* runs of bytes; a file with more counts as one without holes */

/* Of a file that was just opened. Allocates *out (the caller frees it). How many runs there are, or 0:
 * the file has no holes that are worth it, or nothing can be said; then it stands at its beginning. */
size_t nk_tar_holes_map(int fd, const struct stat *st, struct nk_tar_extent **out);

#endif
