/*
 * What runs in a new child between clone and exec, on the parent's memory.
 *
 * Raw system calls only: no libc wrapper that touches all threads, no allocation, no lock, no log.
 * Private to process/ (spawn.c and the self-test). A step that fails never reaches exec.
 */
#ifndef NK_PROCESS_CHILD_H
#define NK_PROCESS_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/creds.h"
#include "process/confine.h"
#include "process/spawn.h"

struct nk_child_failure { /* what goes through the status pipe */
    int step;             /* enum nk_spawn_step */
    int sys;
};

struct nk_child {
    const struct nk_spawn *spawn;   /* all borrowed: the parent waits */
    const struct nk_filter *filter; /* NULL: no seccomp */
    const char *path;               /* the value of PATH in envp */
    int status_fd;                  /* close-on-exec; 3 or above */
    uint64_t reset;                 /* bit N - 1: signal N may not have its default */
    bool confine;                   /* the thread carries no_new_privs and the filter not yet */
    bool bounded;                   /* the thread's bounding set is already empty */
    bool close_range;               /* the kernel has it */
    bool raise_oom;
    volatile bool reached; /* set right before exec; shared with the parent */
};

/* For clone: executes the program, or writes a nk_child_failure and exits with 127. */
NK_RAW int nk_child_run(void *child);

/* setgroups, setresgid, setresuid, each checked, then verified; 0 must not be regained.
 * 0, or -errno and the step. */
NK_RAW int nk_child_become(const struct nk_creds *creds, enum nk_spawn_step *out_step);

/* A system call: its result, or -errno. errno belongs to the parent's thread, which saves it. */
NK_RAW long nk_child_call(long nr, long a, long b, long c, long d);

/* Ends a child that shares the parent's memory. */
NK_RAW NK_NORETURN void nk_child_exit(int status);

#endif
