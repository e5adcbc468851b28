/*
 * What a watch does on pool threads: reads the kernel's events, and makes of them what is told.
 *
 * Of files/watch.c only. A value in it; one thread at a time, with the user's rights.
 */
#ifndef NK_FILES_WATCH_READ_H
#define NK_FILES_WATCH_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/inotify.h>

#include "files/path.h"
#include "files/task.h"
#include "files/walk.h"
#include "files/watch.h"
#include "files/watched.h"

struct nk_watch_read {
    struct nk_place place; /* of the folder that is watched */
    int top;               /* owned: O_PATH */
    int inotify;           /* owned; non-blocking */
    int parent; /* the number of the watch on the folder above, for the end of the top; -1: none */
    bool recursive;
    bool (*tell)(void *ctx, const struct nk_watch_event *event);
    void *ctx;
    struct nk_watched folders;
    struct nk_walk *walk; /* owned: a folder whose content is being added */
    char *walk_at;        /* owned: its path from the top */
    int walk_kind;        /* enum nk_watch_walk */
    char *fresh;          /* owned: the last folder it came to that was not watched; or NULL */
    bool missed;          /* a folder was gone, or had another name, when it was to be watched */
    bool full;            /* the taker has enough for now */
    bool ended;           /* the top is gone */
    bool limited;         /* an overflow by too many folders was told of what is being read */
    size_t crowded;       /* so many were watched when one was left out; 0: none is */
    char *moved;          /* owned: the source of a move whose other half is to come */
    char *last_modified;  /* owned: told just now, not to be told again */
    char *found;          /* owned: paths that a walk has told, each with its NUL */
    size_t found_len;
    uint32_t moved_cookie;
    bool moved_folder;
    bool moved_temp; /* it was a file that was not complete: nobody has heard of it */
    size_t at, len;  /* what is left in buf */
    _Alignas(struct inotify_event) uint8_t buf[16384];
};

/* The place is resolved and opened. 0, or -1 with err. */
int nk_watch_read_open(struct nk_watch_read *r, const struct nk_roots *roots, const char *path,
                       size_t len, struct nk_err *err);
/* Goes on until nothing is left, the taker is full, the time is over (NK_TASK_MORE), or -1. */
int nk_watch_read_go(struct nk_watch_read *r, struct nk_task *t);
void nk_watch_read_fini(struct nk_watch_read *r);

#endif
