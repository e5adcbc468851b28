/*
 * The loop, made ready for a descriptor number of any size it will meet.
 *
 * libuv keeps a table by descriptor number, grows it when a higher one is watched, and ends the
 * process when it cannot. So the table is grown once, at the start.
 */
#ifndef NK_APP_LOOP_H
#define NK_APP_LOOP_H

#include <uv.h>

#define NK_APP_LOOP_TABLE 4096 /* 32 KiB, made at the start; more than a sandbox uses */
#define NK_APP_LOOP_FDS 16384  /* our own limit of descriptors, where the hard one allows it */

struct nk_app_loop {
    uv_poll_t poll; /* closed before nk_app_loop_init returns, its memory is needed for one turn */
    int fd;
};

/* Raises our own soft limit of descriptors, then grows the table. Best effort: both stay as they
 * were where it fails. */
void nk_app_loop_size(struct nk_app_loop *l, uv_loop_t *loop);

#endif
