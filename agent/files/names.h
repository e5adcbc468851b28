/*
 * The names of one folder in byte order, a bounded number at a time.
 *
 * A folder among them has two: its own, and the one that stands for what is in it, which sorts as if
 * it ended in a slash. So the order of names is the order of whole paths.
 *
 * A value of the tree that walks; one thread. Reads the folder, never what is in the files.
 */
#ifndef NK_FILES_NAMES_H
#define NK_FILES_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NK_NAMES_MAX 4096 /* kept of one folder, unless told otherwise */

struct nk_name {
    char *text; /* owned; NULL: none */
    bool inner; /* what is in the folder of this name */
};

struct nk_names {
    size_t max;           /* kept at most; 0: NK_NAMES_MAX */
    bool nested;          /* what is in a folder comes right after it, not in the order of paths */
    struct nk_name *item; /* owned; a run that follows `last` */
    size_t count;
    size_t next;
    size_t cap;
    struct nk_name last; /* taken last; the next run begins behind it */
    bool inclusive;      /* or at it */
    bool more;           /* there are others behind the run */
    bool reading;        /* a reading was interrupted */
    size_t bound;        /* while reading: the place of the largest of a full run, plus 1 */
};

/* Where a folder is read into; one for all that are read one after the other. */
struct nk_names_reader {
    int dir; /* borrowed */
    uint64_t until_ns;
    bool inner; /* folders have their second name too */
    size_t at;
    size_t len;
    _Alignas(8) uint8_t buf[32768];
};

/* In the order of whole paths. */
int nk_names_compare(const struct nk_name *a, const struct nk_name *b);

/* The next run, from the folder. 0, -EAGAIN (call again), or -errno. */
int nk_names_read(struct nk_names *n, struct nk_names_reader *r);
/* Taken: it becomes `last`. NULL: the run is used up. */
const struct nk_name *nk_names_take(struct nk_names *n);
/* Forgets the run: it is read again behind `last`. */
void nk_names_drop(struct nk_names *n);
void nk_names_fini(struct nk_names *n);

#endif
