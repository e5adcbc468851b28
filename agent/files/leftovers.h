/*
 * Removes what a daemon that was killed has left under temporary names (files/temp.h).
 *
 * One pass in the background over the writable roots, at start, with the user's rights: it removes
 * nothing that the user could not remove, nothing that is another user's, and follows no link. It
 * looks at NK_LEFTOVERS_MAX entries at most, what goes with a folder not counted, however much and
 * however deep that is. Owned by app; one task, started and stopped on the loop.
 */
#ifndef NK_FILES_LEFTOVERS_H
#define NK_FILES_LEFTOVERS_H

#include <stddef.h>

#include "files/roots.h"
#include "files/task.h"
#include "files/walk.h"

#define NK_LEFTOVERS_MAX 50000u

struct nk_leftovers {
    struct nk_task task;          /* the owner sets `over` */
    const struct nk_roots *roots; /* borrowed: outlives the task */
    size_t root;
    struct nk_walk *tree;    /* owned while the task runs */
    struct nk_walk *doomed;  /* owned likewise: the folder that is being removed, */
    struct nk_walk_entry at; /* and where `tree` has come upon it */
    unsigned seen;
    unsigned removed;
};

int nk_leftovers_go(struct nk_task *t);            /* the `slice` */
void nk_leftovers_fini(struct nk_leftovers *left); /* in `over` */

#endif
