/*
 * How many files lie in some folders, and how many bytes they hold: one pass, cut into slices.
 *
 * A file counts with its size; one that has far more blocks than that, with its blocks; one of several
 * names once. Folders, links and what else has a name count as a file. Nothing is followed.
 *
 * Blocking, on pool threads, one at a time. Owned by who began it.
 */
#ifndef NK_TENANT_TALLY_H
#define NK_TENANT_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "files/roots.h"

#define NK_TALLY_LINKED_MAX (1u << 17) /* files of several names that are told apart */

struct nk_walk;

struct nk_tally_file {
    dev_t dev;
    ino_t ino;
};

struct nk_tally {
    const struct nk_roots *roots; /* borrowed; of its writable ones */
    const char *const *free;      /* borrowed, NULL-ended, or NULL: top folders that do not count */
    bool of_one;                  /* only what is `uid`'s */
    uid_t uid;
    const struct nk_tally_file *skip; /* borrowed: unfinished uploads, which count elsewhere */
    size_t skip_count;
    size_t at;            /* root */
    struct nk_walk *walk; /* owned */
    uint64_t *linked;     /* owned: a hash table of device and inode; 0: free */
    size_t linked_count, linked_size;
    uint64_t bytes, files;
    uint64_t enough_bytes, enough_files; /* beyond, it is done: more need not be known; 0: none */
};

/* 1: `until_ns` came first, 0: it is done. What cannot be read is passed over. */
int nk_tally_go(struct nk_tally *t, uint64_t until_ns);
void nk_tally_fini(struct nk_tally *t); /* the sums stay */

#endif
