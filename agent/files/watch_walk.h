/*
 * The folders of a recursive watch: found, watched, let go.
 *
 * Of files/watch_read.c only; on its thread. A folder is watched before it is read, so that nothing
 * in it is missed.
 */
#ifndef NK_FILES_WATCH_WALK_H
#define NK_FILES_WATCH_WALK_H

#include "files/watch_read.h"

enum nk_watch_walk {
    NK_WATCH_WALK_FIRST, /* nothing is told: it was there before */
    NK_WATCH_WALK_NEW,   /* all of it appeared */
    NK_WATCH_WALK_FRESH, /* what lies in folders that were not watched appeared */
    NK_WATCH_WALK_AGAIN, /* events were lost: all is looked for anew, then an overflow is told */
};

/* 0: watched; -errno. */
int nk_watch_walk_add(struct nk_watch_read *r, const char *path);
/* One that appeared. Where it cannot be watched, the picture is incomplete; that is told once for
 * all that came together. */
void nk_watch_walk_add_later(struct nk_watch_read *r, const char *path);
/* `path` is watched; what is in it follows, with nk_watch_walk_go. 0 (also: it is gone), -errno. */
int nk_watch_walk_begin(struct nk_watch_read *r, const char *path, enum nk_watch_walk kind);
/* 0: it is over, or the taker is full; NK_TASK_MORE; -1 with the task's err. */
int nk_watch_walk_go(struct nk_watch_read *r, struct nk_task *t);
void nk_watch_walk_end(struct nk_watch_read *r);

void nk_watch_walk_forget(struct nk_watch_read *r, const char *path); /* and all below it */
/* What a walk has told, and the kernel's events tell again: `path` appeared. */
bool nk_watch_walk_has_told(const struct nk_watch_read *r, const char *path);
/* It has gone, with all in it: what comes by that name is new. */
void nk_watch_walk_untell(struct nk_watch_read *r, const char *path);

#endif
