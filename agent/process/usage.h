/*
 * What the sandbox uses of its machine: the control group's values first, else the machine's.
 *
 * Blocking (small files of /proc and /sys): called in jobs only. Plain values.
 */
#ifndef NK_PROCESS_USAGE_H
#define NK_PROCESS_USAGE_H

#include <stdint.h>

struct nk_usage {
    unsigned cpu_count;
    uint64_t cpu_ns; /* used by all since some beginning */
    uint64_t at_ns;  /* monotonic, when cpu_ns was read */
    uint64_t mem_used, mem_total;
    uint64_t disk_used, disk_total; /* of the file system that `folder` is on */
    uint64_t processes;
};

/* What cannot be found out is 0. `root_dir` is "" but for tests. */
void nk_usage_read(const char *root_dir, const char *folder, struct nk_usage *out);

#endif
