/*
 * The daemon's end of an interpreter's channel: requests out, lines in.
 *
 * A stream socket of our own. Lines are bounded, and so is what waits; while it is paused nothing is
 * read and no line is told. Embedded by its owner, which stays until `released`. Loop thread only.
 */
#ifndef NK_CODE_CHANNEL_H
#define NK_CODE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"

struct nk_channel;

struct nk_channel_events {
    void (*line)(struct nk_channel *c, const uint8_t *text, size_t len); /* borrowed for the call */
    /* Nothing comes any more. `why` NULL: the other end is closed. */
    void (*over)(struct nk_channel *c, const char *why);
    void (*released)(struct nk_channel *c);
};

struct nk_channel {
    const struct nk_channel_events *events; /* set by the owner: static */
    uv_poll_t poll;
    int fd; /* owned; -1: closed */
    struct nk_buf in, out;
    size_t seen; /* of `in`: no end of line lies before */
    bool paused, ended, inside;
};

/* Both ends of a new one; *out_child is the caller's. 0 or -errno. */
int nk_channel_open(struct nk_channel *c, uv_loop_t *loop, int *out_child);
void nk_channel_close(struct nk_channel *c); /* twice is fine; `released` comes later */

void nk_channel_send(struct nk_channel *c, const void *data, size_t len);
/* The same, left out where the other side does not even take what was sent before. */
void nk_channel_answer(struct nk_channel *c, const void *data, size_t len);
void nk_channel_pause(struct nk_channel *c, bool pause); /* going on tells the lines that wait */

#endif
