/*
 * The control groups that the daemon makes below its own, where it may write there.
 *
 * One folder of ours holds all commands: the limits of the sandbox are its limits, and below it each
 * tree gets a group of its own, named by its mark (cgroup_trees.h). Version 2; memory and processes
 * in version 1 where version 2 has them not. Never a condition for starting a command: whatever fails
 * here leaves a command as it would be without.
 *
 * Owned by app. Opened and closed while nobody else uses it; what is open does not change afterwards,
 * so jobs may use it. Blocking, but for nk_cgroups_enter.
 */
#ifndef NK_PROCESS_CGROUPS_H
#define NK_PROCESS_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>

#define NK_CGROUP_ENTER_MAX 3
#define NK_CGROUP_NAME "nookd-" /* begins the names of our folders */

struct nk_cgroups {
    char name[32]; /* of our folder, in every hierarchy */
    int lock;      /* owned; of the daemon's own leaf, if it has one; locked like the others */
    int unified;   /* owned; our folder in version 2 */
    int leaf;      /* owned; cgroup.procs of its group for those that start; -1: no limits there */
    int memory;    /* owned; where memory is limited; -1: nowhere */
    int pids;      /* owned; likewise */
    bool memory_v1, pids_v1;
    char base[1024]; /* our own group, in version 2 and 1 */
    char base_memory[1024], base_pids[1024];
    int memory_tasks, pids_tasks;      /* owned; of version 1 */
    bool memory_limited, pids_limited; /* set on the loop, read there */
};

/* Makes our folders; ends and removes what daemons left that are no more. 0, or -errno: then only
 * `base…` is known. */
int nk_cgroups_open(struct nk_cgroups *g);
/* Removes what is empty. Also for one that was never opened, if it is zeroed. */
void nk_cgroups_close(struct nk_cgroups *g);

static inline bool nk_cgroups_are_open(const struct nk_cgroups *g)
{
    return g && g->name[0] != '\0';
}

/* The limits of all commands together, 0 for none. 0, or -errno with nothing changed; -ENOTSUP where
 * there is no such controller. */
int nk_cgroups_limit_memory(const struct nk_cgroups *g, uint64_t bytes);
int nk_cgroups_limit_processes(const struct nk_cgroups *g, uint64_t count);

/* Files that a child writes "0" into, so that a limit holds from its first instruction on: how many. */
unsigned nk_cgroups_enter(const struct nk_cgroups *g, int out[NK_CGROUP_ENTER_MAX]);

#endif
