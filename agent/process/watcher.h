/*
 * Who watches a process: an answer that waits for the end, a stream, a follower, a terminal's viewer.
 *
 * Embedded by its owner, which attaches it and must detach it; attached it holds a reference to the
 * record. Loop thread only.
 */
#ifndef NK_PROCESS_WATCHER_H
#define NK_PROCESS_WATCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"

struct nk_process;

/* Unread bytes at which a holding watcher stops the reading: little for one that has not shown that
 * it reads, so that a client that never does costs little, more as it reads on. */
#define NK_HOLD_MIN (32u * 1024u)
#define NK_HOLD_MAX (256u * 1024u)

/* What happened. FAILED: never started; `err` of the watcher's callback tells, nothing else comes. */
enum nk_proc_event {
    NK_PROC_EV_STARTED,
    NK_PROC_EV_FAILED,
    NK_PROC_EV_OUTPUT, /* the log has grown */
    NK_PROC_EV_INPUT,  /* stdin took bytes or was closed */
    NK_PROC_EV_RESIZED,
    NK_PROC_EV_EXITED, /* once; all output up to end_offset is in the log */
};

/* Embedded by a handler, a stream, a follower. Holds a reference while attached. Callbacks come
 * from the loop, never from within a call into this room by the same watcher's owner (but
 * nk_process_start may not call before it returns either). Detaching inside a callback is allowed. */
struct nk_watcher {
    struct nk_list link;
    struct nk_process *process; /* NULL: not attached */
    void (*on_event)(struct nk_watcher *w, enum nk_proc_event ev, const struct nk_err *err);
    bool holds;   /* the outputs are not read much further than `pos` (NK_HOLD_MIN) */
    uint64_t pos; /* next offset this watcher wants; moved by nk_watcher_advance */
};

void nk_watcher_attach(struct nk_watcher *w, struct nk_process *p);
void nk_watcher_detach(struct nk_watcher *w); /* may free the record; twice is fine */
void nk_watcher_advance(struct nk_watcher *w, uint64_t pos); /* may let reading go on */

#endif
