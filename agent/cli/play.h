/*
 * A stream of events played onto standard output and error: exec, logs, and whatever streams later.
 *
 * `stdout` and `stderr` events are written as they come; each other event goes to the caller, who
 * says when it is over. A stream that ends before that is broken.
 */
#ifndef NK_CLI_PLAY_H
#define NK_CLI_PLAY_H

#include "base/err.h"
#include "cli/interrupt.h"
#include "cli/sse_read.h"
#include "http/client.h"

#define NK_PLAY_ON (-1)
#define NK_PLAY_EVENT_MAX (32u * 1024u * 1024u)

/* NK_PLAY_ON, or the exit status to end with. Called for every event, for output after it was
 * written. */
typedef int (*nk_play_fn)(void *ctx, const struct nk_sse_event *event);

struct nk_play {
    nk_play_fn on_event;
    void *ctx;                       /* borrowed: outlives the play */
    const struct nk_interrupt *wait; /* borrowed: likewise */
};

/* Plays the body of an answer whose head has been read. The exit status: what on_event said,
 * 128 + N after a signal, NK_OUT_PIPE, or NK_OUT_FAILED (told on standard error). */
int nk_play_run(const struct nk_play *p, struct nk_client *c);

/* Waits for the head of the answer; 0 with a status, or an exit status as above. */
int nk_play_head(const struct nk_play *p, struct nk_client *c, int *out_status);

int nk_play_error(const struct nk_sse_event *event); /* tells an `error` event: NK_OUT_FAILED */

#endif
