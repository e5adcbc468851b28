/*
 * A seccomp program, built from verdicts about call numbers.
 *
 * A search tree over the numbers: short, because a start on the loop installs it anew, which costs
 * by the instruction. Private to confine.c. Pure.
 */
#ifndef NK_PROCESS_FILTER_H
#define NK_PROCESS_FILTER_H

#include <stddef.h>

#include "process/confine.h"

enum nk_verdict {
    NK_VERDICT_ALLOW,
    NK_VERDICT_DENY,    /* EPERM */
    NK_VERDICT_MISSING, /* ENOSYS */
    NK_VERDICT_KILL,
    /* By an argument: allowed but for new namespaces, typing into a terminal, another persona. */
    NK_VERDICT_CLONE,
    NK_VERDICT_UNSHARE,
    NK_VERDICT_IOCTL,
    NK_VERDICT_PERSONA,
    NK_VERDICT_COUNT,
};

#define NK_FILTER_CALLS_MAX 100

struct nk_filter_call {
    unsigned nr;
    enum nk_verdict verdict;
};

/* Sorts `calls`. All other numbers are `otherwise`, those of another architecture kill.
 * 0, -E2BIG, or -ENOMEM. */
int nk_filter_build(struct nk_filter_call *calls, size_t count, enum nk_verdict otherwise,
                    struct nk_filter *out);

#endif
