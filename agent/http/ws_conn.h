/*
 * A WebSocket on a connection: messages in, frames out, the protocol's own talk in between.
 *
 * Answers pings, asks itself whether the client is still there, closes with a handshake that has a
 * time limit, and drops a client that breaks the protocol. Output is pulled like any other reply;
 * answers go ahead of it. Input is back-pressure by pausing. Embedded by the handler's state, which
 * must stay until `released`. Loop thread only; knows nothing of what is talked about.
 */
#ifndef NK_HTTP_WS_CONN_H
#define NK_HTTP_WS_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "http/reply.h"
#include "http/request.h"
#include "http/ws.h"

#define NK_WS_PING_MS 15000
#define NK_WS_SILENCE_MS 60000 /* without a byte from the client: it is gone */
#define NK_WS_CLOSE_MS 5000    /* for the client's part of the closing */
#define NK_WS_CONTROL_RATE 100 /* pings and pongs a second */
#define NK_WS_ANSWERS_MAX (16u * 1024u)

struct nk_ws_conn;

struct nk_ws_events {
    /* A whole message, borrowed for the call. */
    void (*on_message)(struct nk_ws_conn *c, enum nk_ws_kind kind, const uint8_t *data, size_t len);
    /* As nk_source.pull: adds frames. NK_PULL_END: a close frame with `close_code` follows. */
    enum nk_pull (*pull)(struct nk_ws_conn *c, struct nk_buf *out, size_t room);
    /* Once: the client is leaving or gone, no other call comes but `released`. */
    void (*over)(struct nk_ws_conn *c);
    /* No handle is open any more. */
    void (*released)(struct nk_ws_conn *c);
};

struct nk_ws_conn {
    const struct nk_ws_events *events; /* set by the owner: static */
    struct nk_ws_limits limits;        /* set by the owner, or zero: the usual ones */
    unsigned close_code;               /* set by the owner at any time; NK_WS_NO_CODE: 1000 */

    struct nk_req *req; /* borrowed: NULL once it is over */
    struct nk_source source;
    struct nk_ws in;
    struct nk_buf kept;    /* owned: read, and not taken apart while paused */
    struct nk_buf answers; /* owned: pongs */
    uv_timer_t timer;
    uint64_t heard_ms;  /* when the client last sent something, or could again */
    uint64_t pinged_ms; /* when it was last asked */
    uint64_t closing_ms;
    uint64_t rate_ms; /* since when control frames are counted */
    unsigned rate;
    bool paused;
    bool ping_due;
    bool breaking;  /* the client broke the protocol: one more pull, then the closing */
    bool closing;   /* nothing more but a close frame goes out */
    bool close_out; /* it is sent */
    bool close_in;  /* the client's has come, or none will */
    bool told;      /* `over` was called */
};

/* Accepts the upgrade of `req`, which has not been answered: 101, with `protocol` where the client
 * offers it. From here on `released` comes, once. */
void nk_ws_conn_open(struct nk_ws_conn *c, struct nk_req *req, uv_loop_t *loop,
                     const char *protocol);

/* Something can be pulled. */
void nk_ws_conn_wake(struct nk_ws_conn *c);

/* Back-pressure: no message comes while paused. Allowed from anywhere, also from on_message. */
void nk_ws_conn_pause(struct nk_ws_conn *c, bool pause);

#endif
