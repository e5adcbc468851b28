/*
 * The folders of a watch, by the numbers that the kernel gave them.
 *
 * Of files/watch.c only; one thread at a time.
 */
#ifndef NK_FILES_WATCHED_H
#define NK_FILES_WATCHED_H

#include <stdbool.h>
#include <stddef.h>

struct nk_watched {
    struct nk_watched_folder *item; /* owned; in the order of numbers */
    size_t count;                   /* with those that were let go */
    size_t live;
    size_t cap;
    unsigned round; /* of looking for all of them */
};

struct nk_watched_folder {
    int wd;
    unsigned round; /* in which it was found last */
    char *path;     /* owned: from the top; NULL: let go */
    char *seen;     /* owned: where it was met, while events have not led there; or NULL */
};

/* A number that is known gets the new path. 0, or -ENOMEM. */
int nk_watched_add(struct nk_watched *w, int wd, const char *path);
const char *nk_watched_find(const struct nk_watched *w, int wd); /* NULL: not known (any more) */
/* One that is known was met at another path: events about its way there may be yet to come. */
void nk_watched_meet(struct nk_watched *w, int wd, const char *path);
void nk_watched_drop(struct nk_watched *w, int wd);
/* `path` and all below it: they are called by the new path.*/
int nk_watched_move(struct nk_watched *w, const char *path, const char *to);
/* The next folder, from `*at` on, that has left with `path` or from below it, or -1: the caller lets
 * go of it. One that was met elsewhere stays, by that path. `*at` begins at 0. */
int nk_watched_leave(struct nk_watched *w, const char *path, size_t *at);
/* The first folder that is `path` or below it, or -1. */
int nk_watched_below(const struct nk_watched *w, const char *path);
void nk_watched_fini(struct nk_watched *w);

#endif
