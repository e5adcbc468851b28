/*
 * Where our own control group lies in each hierarchy that serves us.
 *
 * Pure: read from the texts of /proc/self/mountinfo and /proc/self/cgroup.
 */
#ifndef NK_PROCESS_CGROUP_PLACE_H
#define NK_PROCESS_CGROUP_PLACE_H

#include <stddef.h>

enum nk_cgroup_kind {
    NK_CGROUP_UNIFIED, /* version 2 */
    NK_CGROUP_MEMORY,  /* of version 1 */
    NK_CGROUP_PIDS,    /* of version 1 */
    NK_CGROUP_KINDS,
};

/* The folder of our group. 0, -ENOENT (no such hierarchy is mounted, or our group is outside of what
 * is shown), or -ENAMETOOLONG. */
int nk_cgroup_place_find(const char *mounts, const char *groups, enum nk_cgroup_kind kind,
                         char *out, size_t size);

#endif
