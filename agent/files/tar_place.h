/*
 * Where one entry of an archive goes, and how it gets there.
 *
 * Every entry is come to by files/tar_way.h, never through a link. A file is written without a name
 * (or under one of its own) and gets its final name when it is whole; what was there is replaced in
 * that moment, and a link there is replaced, not followed.
 *
 * Blocking. Functions give 0 (or a descriptor), or -errno: -ELOOP where a link is in the way.
 */
#ifndef NK_FILES_TAR_PLACE_H
#define NK_FILES_TAR_PLACE_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "files/tar_way.h"
#include "files/temp.h"

struct nk_tar_place {
    int dir;                /* borrowed: the way's, until it goes elsewhere */
    const char *name;       /* borrowed: of the entry, inside its path */
    char temp[NK_TEMP_MAX]; /* its name until it is whole; "": it has none */
};

/* Whether files here can be made without a name and get one later. */
bool nk_tar_place_probe(int dest);

/* As nk_tar_way_enter. */
int nk_tar_place_enter(struct nk_tar_way *way, const char *path, bool make,
                       struct nk_tar_place *out);

/* A new, empty file to write to; then exactly one of _commit and _drop. `nameless`: as probed. The mode
 * may be more narrow than `mode`. */
int nk_tar_place_open(struct nk_tar_place *p, bool nameless, mode_t mode);
int nk_tar_place_commit(struct nk_tar_place *p, int fd);
void nk_tar_place_drop(struct nk_tar_place *p);

int nk_tar_place_symlink(struct nk_tar_place *p, const char *target, const struct timespec *mtime);
/* `target`: clean; a regular file of our own. `way`: another than the place's. */
int nk_tar_place_hardlink(struct nk_tar_place *p, struct nk_tar_way *way, const char *target);

/* A folder that is there already is made writable for us, if it is ours. 1: it was there; 0: made. */
int nk_tar_place_mkdir(struct nk_tar_place *p, mode_t mode);
int nk_tar_place_set_dir(struct nk_tar_place *p, mode_t mode, const struct timespec *mtime);

#endif
