/*
 * A command behind a WebSocket: its output as messages, from an offset to its end, and what the
 * client sends to it.
 *
 * The one pump behind exec/ws and attach. With `holds` the reader sets the pace of the command and can
 * miss nothing; without, it never slows the process and is told of each `gap`. Input that the command
 * does not take yet stops the reading of the socket. Embedded by the handler's state, which must stay
 * until `released`. Loop thread only.
 */
#ifndef NK_API_SESSION_H
#define NK_API_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "api/shown.h"
#include "base/err.h"
#include "base/json.h"
#include "http/ws_conn.h"
#include "process/process.h"
#include "process/stdin.h"

#define NK_SESSION_PROTOCOL "nook.v1"
#define NK_SESSION_START_MS 10000 /* for the first message */

struct nk_session;

struct nk_session_events {
    /* The first message, a text; NULL: the process is there already. Fails the session, or has it
     * begin when the watcher hears of the start. */
    void (*on_start)(struct nk_session *s, const void *text, size_t len);
    /* The process is there: the opening message. */
    void (*write_opening)(struct nk_session *s, struct nk_buf *out);
    /* Once: the client is leaving or gone, or was sent away. The watcher is still attached. */
    void (*over)(struct nk_session *s);
    /* No handle is open any more. */
    void (*released)(struct nk_session *s);
};

struct nk_session {
    const struct nk_session_events *events; /* set by the owner: static */
    bool holds;                             /* set by the owner */
    bool binary;                            /* set by the owner, at the latest in write_opening */

    struct nk_shown shown; /* set by the owner, at the latest in write_opening */
    struct nk_ws_conn ws;
    struct nk_watcher watcher;
    uv_timer_t wait; /* for the first message, then for the rest of a character */
    unsigned handles;
    uint64_t held_at;            /* the position that `wait` runs for */
    struct nk_json_bytes input;  /* owned: a message that the command has not taken yet */
    struct nk_stdin_piece piece; /* what is left of it */
    bool begun;
    bool opening_due;
    bool ack_due;
    bool refused_due; /* a stdin_error */
    bool flush;       /* what is held back has waited long enough */
    bool left;        /* `over` was called */
    bool failed;      /* `err` is the last message */
    struct nk_err err;
};

/* Accepts the upgrade. From here on `released` comes, once. */
void nk_session_open(struct nk_session *s, struct nk_req *req, uv_loop_t *loop);

/* Attaches to a process that is there, from `pos` (at most the log's end). */
void nk_session_join(struct nk_session *s, struct nk_process *p, uint64_t pos);

/* The error is the last message; then the socket is closed with `code`. */
void nk_session_fail(struct nk_session *s, const struct nk_err *err, unsigned code);

#endif
