/*
 * What process 1 finds missing: /proc, /sys, /dev, /dev/pts, /dev/shm, /run, control groups.
 *
 * Best effort, once at the start, before anything is opened; what is there is left as it is.
 */
#ifndef NK_PROCESS_MOUNTS_H
#define NK_PROCESS_MOUNTS_H

void nk_mounts_make(void);

#endif
