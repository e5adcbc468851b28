/*
 * A page of what is in a folder, or below it, in the byte order of paths.
 *
 * Stateless: the next page begins behind the last path of this one. Memory does not grow with the
 * folder. Filled by the caller on the loop; `nk_listing_read` is the task's slice. What vanishes
 * meanwhile, and what is in folders that may not be read, is left out.
 */
#ifndef NK_FILES_LISTING_H
#define NK_FILES_LISTING_H

#include "files/entry.h"
#include "files/path.h"
#include "files/task.h"
#include "files/walk.h"

struct nk_listing {
    struct nk_task task;
    const struct nk_roots *roots; /* borrowed: outlives the task */
    char *path;                   /* owned */
    size_t path_len;
    char *after; /* owned: a path below it; NULL: from the beginning */
    bool recursive;
    unsigned depth; /* of a recursive one; 0: all */
    size_t limit;
    /* On the pool thread, for each entry; the entry is borrowed for the call. 0, or -1: no memory. */
    int (*each)(struct nk_listing *l, const struct nk_entry *entry);
    /* the result */
    size_t count;
    char *next;    /* owned: the last path, when there are more; else NULL */
    bool too_deep; /* something has a path that no request can say, and was left out */
    /* its own */
    struct nk_place place;
    struct nk_owners owners;
    struct nk_walk *tree;             /* owned */
    char *last;                       /* owned: path of the last entry */
    char text[2 * NK_PLACE_PATH_MAX]; /* of the entry that is told */
};

int nk_listing_read(struct nk_task *t);
void nk_listing_fini(struct nk_listing *l); /* a zeroed one is fine */

#endif
