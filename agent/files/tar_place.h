/*
 * Where one entry of an archive goes, and how it gets there.
 *
 * Every entry is walked to anew from the target's descriptor, one part at a time and never through a
 * link: nothing that was found out about a folder before is believed again. A file is written without
 * a name (or under one of its own) and gets its final name when it is whole; what was there is
 * replaced in that moment, and a link there is replaced, not followed.
 *
 * Blocking. Functions give 0 (or a descriptor), or -errno: -ELOOP where a link is in the way.
 */
#ifndef NK_FILES_TAR_PLACE_H
#define NK_FILES_TAR_PLACE_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "files/tar_name.h"
#include "files/temp.h"

struct nk_tar_place {
    int dir;                         /* owned: O_PATH */
    char name[NK_TAR_NAME_PART + 1]; /* of the entry */
    char temp[NK_TEMP_MAX];          /* its name until it is whole; "": it has none */
};

/* Whether files here can be made without a name and get one later. */
bool nk_tar_place_probe(int dest);

/* `path` is clean and not empty. `make`: missing folders on the way are made. */
int nk_tar_place_enter(int dest, const char *path, bool make, struct nk_tar_place *out);
void nk_tar_place_leave(struct nk_tar_place *p);

/* A new, empty file to write to; then exactly one of _commit and _drop. `nameless`: as probed. */
int nk_tar_place_open(struct nk_tar_place *p, bool nameless);
int nk_tar_place_commit(struct nk_tar_place *p, int fd);
void nk_tar_place_drop(struct nk_tar_place *p);

int nk_tar_place_symlink(struct nk_tar_place *p, const char *target, const struct timespec *mtime);
/* `target`: clean, from `dest`, where it must be a regular file of our own. */
int nk_tar_place_hardlink(struct nk_tar_place *p, int dest, const char *target);

/* A folder that is there already is made writable for us, if it is ours. 1: it was there; 0: made. */
int nk_tar_place_mkdir(struct nk_tar_place *p, mode_t mode);
int nk_tar_place_set_dir(struct nk_tar_place *p, mode_t mode, const struct timespec *mtime);

#endif
