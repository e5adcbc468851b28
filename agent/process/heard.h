/*
 * Who has heard a signal that goes to a whole tree, so that none of it is missed and none is told
 * twice: groups are signalled as a whole, which misses no child that is being born. A parent that
 * holds the signal back while it starts a child (shells and vfork do) keeps it for itself, though:
 * such children are told after it.
 *
 * Blocking: used in jobs only, by tree.c. Lives on the stack of one pass or two. Private to process/.
 */
#ifndef NK_PROCESS_HEARD_H
#define NK_PROCESS_HEARD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct nk_hearer {
    pid_t pid;
    bool held_back; /* it had not taken the signal when it was looked at */
};

struct nk_heard {
    int signo;  /* 0: nobody is told anything */
    bool moves; /* only those who do not stand still */
    bool later; /* the second pass, for those who were born meanwhile */
    size_t group_count, group_cap;
    pid_t *group; /* owned */
    size_t count, cap;
    struct nk_hearer *hearer; /* owned; of signals that can be held back */
};

void nk_heard_fini(struct nk_heard *h);

/* Signals a member of the tree: by its group where it can be. `proc` is a descriptor of /proc, `pidfd`
 * one of the process or -1. In the second pass only whom a parent kept it from. */
void nk_heard_tell(struct nk_heard *h, int proc, int pidfd, pid_t pid);

/* Waits a moment for those who hold it back. True: a second pass is due. */
bool nk_heard_settle(struct nk_heard *h);

#endif
