/*
 * A folder and all below it, in the byte order of paths ("a", "a-b", "a/c"), or, where that is asked
 * for, each folder with all that is in it ("a", "a/c", "a-b"). Links are not followed.
 *
 * Holds two descriptors whatever the depth, and a bounded number of names whatever the size: the
 * smallest names of a folder are collected, and it is read again for the next ones. It goes back up
 * by `..`, verified to be the folder it came from. What vanishes meanwhile is skipped.
 *
 * Made, used and freed on one thread at a time, with the user's rights; blocking. A call may stop in
 * the middle when its deadline is over, and goes on with the next call.
 */
#ifndef NK_FILES_WALK_H
#define NK_FILES_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct nk_walk;

struct nk_walk_options {
    unsigned depth;  /* how many levels below the top; 0: all */
    size_t path_max; /* what has a longer path is left out; 0: no bound */
    bool tolerant;   /* a folder that may not be read counts as empty */
    /* To remove all: a folder of our own that may not be read or changed is made so, and what lies
     * too deep is brought up to the top, and comes last. */
    bool force;
    bool nested;       /* in the order of names: what is in a folder comes right after it */
    size_t names_max;  /* kept of one folder; 0: NK_NAMES_MAX */
    const char *after; /* borrowed for _new: begin behind this path; NULL: at the beginning */
    /* Whether a folder is entered that is `depth` levels below the top; NULL: all are. */
    bool (*enters)(const struct stat *st, size_t depth, void *ctx);
    void *ctx; /* borrowed */
};

struct nk_walk_entry { /* borrowed until the next call */
    int dir;           /* the folder it lies in */
    const char *name;
    const char *path; /* from the top */
    size_t path_len;
    struct stat st; /* not when leaving */
    bool leaving;   /* a folder, after all that is in it */
};

/* Takes `dir` (O_RDONLY), also on failure. 0 or -ENOMEM. */
int nk_walk_new(int dir, const struct nk_walk_options *options, struct nk_walk **out);
void nk_walk_free(struct nk_walk *tree); /* NULL is fine */

/* 1: an entry, 0: the end, -EAGAIN: `until_ns` is over (go on later), or -errno (-ENAMETOOLONG: too
 * many levels), with the path of what it was in out->path; after that the next call goes on behind
 * it. */
int nk_walk_next(struct nk_walk *tree, uint64_t until_ns, struct nk_walk_entry *out);
bool nk_walk_is_cut(const struct nk_walk *tree); /* `path_max` has left something out by now */

#endif
