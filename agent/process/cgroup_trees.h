/*
 * A control group for each tree of a command, named by its mark: what the tree is, the kernel then
 * knows by itself, and can kill or freeze it at once.
 *
 * A tree is put into its group after its start, by looks at /proc, so that a short command pays
 * nothing for it. Blocking: called in jobs only. All on open groups with version 2.
 */
#ifndef NK_PROCESS_CGROUP_TREES_H
#define NK_PROCESS_CGROUP_TREES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/cgroups.h"

struct nk_cgroup_range {
    gid_t first;
    unsigned count;
    const uint8_t *which; /* borrowed; a byte a mark: those with 1 only; NULL: all */
};

/* Puts whoever carries one of the marks into the group of its tree, pass after pass, until two find
 * nobody outside, so many were made, or it took too long. 0, -EAGAIN or -ETIMEDOUT (some are
 * outside), or -errno. */
int nk_cgroup_trees_hold(const struct nk_cgroups *g, const struct nk_cgroup_range *range);

/* The same with groups that are frozen. Also waits until they stand still: -ETIMEDOUT. */
int nk_cgroup_trees_freeze(const struct nk_cgroups *g, const struct nk_cgroup_range *range,
                           uint64_t deadline_ms);

/* One tree, or with 0 all. */
void nk_cgroup_trees_thaw(const struct nk_cgroups *g, gid_t mark);

void nk_cgroup_trees_kill(const struct nk_cgroups *g, gid_t mark);
void nk_cgroup_trees_drop(const struct nk_cgroups *g, gid_t mark); /* the group, if it is empty */

/* How many of the tree were killed for want of memory, as far as the kernel counts it. */
uint64_t nk_cgroup_trees_oom(const struct nk_cgroups *g, gid_t mark);

#endif
