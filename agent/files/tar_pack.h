/*
 * Packing: a tree of files becomes the entries of an archive.
 *
 * Links are kept as links and never followed; sockets, FIFOs and devices are left out; names are
 * what the caller wants them to begin with. What vanishes or changes its kind while it is walked is
 * left out too; what cannot be read, or becomes shorter while it is read, is an error: the archive
 * would be a lie.
 *
 * Each folder is followed by all that is in it, in the order of names: readers set a folder's mode and
 * time when they leave it. As deep as files/walk.h goes, with two descriptors.
 *
 * Blocking; on one thread that has the user's rights. Memory is bounded: the names of a folder, levels,
 * and hard links.
 */
#ifndef NK_FILES_TAR_PACK_H
#define NK_FILES_TAR_PACK_H

#include <stdbool.h>

#include "base/err.h"
#include "files/tar_links.h"
#include "files/tar_name.h"
#include "files/tar_worker.h"

/* Of a whole name, which grows with every level. The reader that we have ourselves takes a longer one
 * for damage. */
#define NK_TAR_PACK_NAME (1000u * 1024)

struct nk_tar_pack {
    struct nk_tar_writer *writer; /* borrowed */
    bool skip_links;              /* no links at all: a file with several names comes each time */
    struct nk_tar_links links;
    uint8_t *data;   /* owned */
    char *name;      /* owned: of the entry at hand */
    size_t name_cap; /* of what it has room for */
    size_t top_len;  /* of the name of what is packed; the rest is its path in it */
    char target[NK_TAR_NAME_MAX + 1]; /* of a symbolic link */
};

int nk_tar_pack_init(struct nk_tar_pack *p, struct nk_tar_writer *writer, bool skip_links,
                     struct nk_err *err);
void nk_tar_pack_fini(struct nk_tar_pack *p); /* also of a zeroed one */

/* What lies at `leaf` in the folder `dir`, with all that is in it, named `name` ("." gives "./").
 * Nothing there is NK_NOT_FOUND. */
int nk_tar_pack_add(struct nk_tar_pack *p, int dir, const char *leaf, const char *name,
                    struct nk_err *err);

#endif
