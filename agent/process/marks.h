/*
 * The groups that mark trees: a supplementary group of its own for every command.
 *
 * A user cannot drop a group, double forks inherit it, and /proc shows it; so whatever carries a
 * mark belongs to that command. A mark is given out again only after nothing carries it any more.
 * They are given out in turn, so a number is not seen again soon. Owned by the registry.
 */
#ifndef NK_PROCESS_MARKS_H
#define NK_PROCESS_MARKS_H

#include <stdint.h>
#include <sys/types.h>

struct nk_marks {
    gid_t first;
    unsigned count; /* 0: there are none */
    unsigned next;
    unsigned taken;
    uint8_t *used; /* owned; one byte a mark */
};

int nk_marks_init(struct nk_marks *m, gid_t first, gid_t last); /* first 0: none. 0 or -ENOMEM */
void nk_marks_fini(struct nk_marks *m);
gid_t nk_marks_take(struct nk_marks *m);            /* 0: none left, or there are none */
void nk_marks_give(struct nk_marks *m, gid_t mark); /* 0 is ignored */

#endif
