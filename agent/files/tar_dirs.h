/*
 * Modes and times of unpacked folders, kept until everything is in them.
 *
 * A folder may be read-only, and every file put into it changes its time; so both are set at the
 * end, inner folders before outer ones. A zeroed struct is a valid empty one.
 */
#ifndef NK_FILES_TAR_DIRS_H
#define NK_FILES_TAR_DIRS_H

#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "base/buf.h"

#define NK_TAR_DIRS_BYTES (64u * 1024u * 1024u) /* of their names */

struct nk_tar_dir;
struct nk_tar_way;

struct nk_tar_dirs {
    struct nk_tar_dir *item; /* owned */
    size_t count, cap;
    struct nk_buf names; /* owned */
};

/* 0, or -ENOMEM. */
int nk_tar_dirs_add(struct nk_tar_dirs *d, const char *path, mode_t mode,
                    const struct timespec *mtime);
void nk_tar_dirs_apply(struct nk_tar_dirs *d, struct nk_tar_way *way); /* as well as it goes */
void nk_tar_dirs_fini(struct nk_tar_dirs *d);

#endif
