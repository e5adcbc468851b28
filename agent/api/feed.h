/*
 * The output of a process as Server-Sent Events, from an offset to its closing event.
 *
 * The one pump behind exec/stream, code/stream and follow: what the log holds, then what comes. With
 * `holds` the reader sets the pace of the command and can miss nothing; without, it never slows the
 * process and is told of each `gap`. Embedded by the handler's state, which must stay until
 * `released`. Loop thread only.
 */
#ifndef NK_API_FEED_H
#define NK_API_FEED_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "api/shown.h"
#include "http/reply.h"
#include "http/request.h"
#include "process/process.h"

struct nk_feed {
    bool holds;            /* set by the owner: the pace is the reader's */
    bool opening;          /* set by the owner: a `started` event comes first */
    struct nk_shown shown; /* set by the owner: whether what a run in a context shows comes too */
    /* Set by the owner; the closing event, NULL: `exit`. */
    void (*write_closing)(struct nk_feed *f, struct nk_buf *out);
    /* Set by the owner, may be NULL: the request is over. `gone`: before the closing event. */
    void (*over)(struct nk_feed *f, bool gone);
    /* Set by the owner: the request is over and no handle is open any more. */
    void (*released)(struct nk_feed *f);

    struct nk_watcher watcher; /* the feed's own from here on */
    struct nk_source source;
    struct nk_req *req; /* borrowed: NULL once it is over */
    uv_timer_t hold;    /* how long the beginning of a character is held back */
    uv_timer_t beat;    /* comments */
    unsigned handles;
    uint64_t held_at; /* the position that `hold` runs for */
    bool flush;       /* what is held has waited long enough */
    bool comment;     /* one is due */
    bool lost;        /* output was forgotten before it could be sent */
    bool half_closed; /* the client has shut its sending side */
};

/* Before a process is there: makes the handles and answers for the request's end. `req` has not been
 * answered. From here on `released` comes, once. */
void nk_feed_open(struct nk_feed *f, struct nk_req *req, uv_loop_t *loop);

/* For nk_process_start: the watcher to hand over; STARTED begins the response at offset 0, FAILED
 * answers with the error. */
struct nk_watcher *nk_feed_watcher(struct nk_feed *f);

/* For a process that is there: attaches and begins the response at `pos` (at most the log's end). */
void nk_feed_join(struct nk_feed *f, struct nk_process *p, uint64_t pos);

#endif
