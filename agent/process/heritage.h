/*
 * What nookd was started with and hands on to PROGRAM: signal mask, ignored signals, descriptors,
 * the terminal in front of it.
 *
 * Recorded by main before anything is blocked or opened; a plain value, never changed once the loop
 * turns. The raw functions run in the new child between clone and exec (child.h).
 */
#ifndef NK_PROCESS_HERITAGE_H
#define NK_PROCESS_HERITAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"

#define NK_HERITAGE_FDS 64

struct nk_heritage {
    uint64_t blocked, ignored; /* bit N - 1: signal N */
    pid_t parent;
    uint64_t nofile;          /* soft limit of descriptors */
    int fds[NK_HERITAGE_FDS]; /* PROGRAM keeps them under their numbers */
    size_t fd_count;
    bool foreground;  /* standard input is a terminal whose foreground is ours to give */
    char *listen_pid; /* borrowed: room for the digits of the child's pid in its environment */
};

void nk_heritage_record(struct nk_heritage *out);

/* Makes 0 to 2 exist, and closes every other descriptor but `keep` and those of `h`, which become
 * close-on-exec. 0, or -EBADF and the one that is not open. */
int nk_heritage_close_fds(const struct nk_heritage *h, int keep, int *out_missing);

/* Raw. Each 0 or -errno. */
NK_RAW int nk_heritage_make_group(const struct nk_heritage *h, int terminal);
NK_RAW int nk_heritage_set_signals(const struct nk_heritage *h);
NK_RAW int nk_heritage_keep_fds(const struct nk_heritage *h);
NK_RAW void nk_heritage_name_pid(const struct nk_heritage *h);

#endif
