/*
 * One quick pass over a tree: every regular file, in the order the folders give them.
 *
 * Where files/walk.h has an order and bounds its names, this one has speed: a folder is read once,
 * and only files are looked at. Links are not followed; caches, the agent's own files and file systems
 * of the kernel are left out. Descriptors are held for the first NK_TREE_SCAN_HELD levels.
 *
 * Made, used and freed on one thread at a time, with the user's rights; blocking. A call may stop in
 * the middle when its deadline is over.
 */
#ifndef NK_FILES_TREE_SCAN_H
#define NK_FILES_TREE_SCAN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define NK_TREE_SCAN_HELD 24

struct nk_tree_scan;

struct nk_tree_scan_file {
    const char *path; /* borrowed until the next call: from the top */
    size_t path_len;
    uint64_t hash; /* of the path, with the seed */
    struct stat st;
};

int nk_tree_scan_new(struct nk_tree_scan **out); /* 0 or -ENOMEM */
void nk_tree_scan_free(struct nk_tree_scan *s);

/* Begins with another tree; takes `dir` (O_RDONLY). */
void nk_tree_scan_begin(struct nk_tree_scan *s, int dir, uint64_t seed);

/* 1: a file, 0: the end, -EAGAIN: `until_ns` is over. What cannot be read is passed over. */
int nk_tree_scan_next(struct nk_tree_scan *s, uint64_t until_ns, struct nk_tree_scan_file *out);

/* Two numbers into one, well mixed. */
uint64_t nk_tree_scan_mix(uint64_t a, uint64_t b);

#endif
