/*
 * Whether the kernel has lately killed somebody here for want of memory: the counters of the control
 * groups that everything runs in, which may be read even where no group can be made.
 *
 * Owned by the registry; loop thread. Reading a counter waits for nothing.
 */
#ifndef NK_PROCESS_OOM_H
#define NK_PROCESS_OOM_H

#include <stdbool.h>
#include <stdint.h>

#include "process/cgroups.h"

#define NK_OOM_FILES 3

struct nk_oom {
    int fd[NK_OOM_FILES]; /* owned; -1: none */
    uint64_t seen;
    uint64_t looked_ms, grown_ms;
};

/* `g` has been opened, or has failed to. */
void nk_oom_open(struct nk_oom *o, const struct nk_cgroups *g);
void nk_oom_close(struct nk_oom *o);

/* Cheap but once a second: so that what happened long ago is not taken for what happens next. */
void nk_oom_look(struct nk_oom *o);
bool nk_oom_lately(struct nk_oom *o);

#endif
