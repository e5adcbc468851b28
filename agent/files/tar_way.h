/*
 * The way from the target of an archive to the folder that an entry lies in.
 *
 * One part at a time, each opened below the one before and never through a link. The last folder stays
 * open, since the next entry mostly lies in it too; before it is used again one look must find it at
 * its path, or the way is walked anew. So what was moved or replaced meanwhile is not written to.
 *
 * A zeroed struct is none; it is open between _init and _fini. Blocking, on one thread.
 */
#ifndef NK_FILES_TAR_WAY_H
#define NK_FILES_TAR_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "files/tar_name.h"

struct nk_tar_way {
    int dest; /* borrowed: any descriptor of the target */
    int dir;  /* owned: O_PATH, of the last folder; -1: none */
    dev_t dev;
    ino_t ino;
    size_t len; /* of its path */
    char path[NK_TAR_NAME_MAX + 1];
};

void nk_tar_way_init(struct nk_tar_way *w, int dest);
void nk_tar_way_fini(struct nk_tar_way *w);

/* The folder of `path`, which is clean and not empty; `make`: what is missing on the way is made.
 * A descriptor, borrowed until the next call; or -errno: -ELOOP where a link is in the way. `out_leaf`
 * is the last part, inside `path`. */
int nk_tar_way_enter(struct nk_tar_way *w, const char *path, bool make, const char **out_leaf);

/* What stands at `name` where no folder could be opened: -ELOOP for a link, -ENOTDIR. */
int nk_tar_way_no_folder(int dir, const char *name);

#endif
