/*
 * WebSocket frames (RFC 6455), read and written; no extensions.
 *
 * The reader takes bytes cut anywhere and gives whole messages and control frames; what breaks the
 * protocol, is not UTF-8 in a text, or is larger than allowed is found at the first byte that shows
 * it. The writer adds frames to a buffer. Both for either side. Pure: no I/O, no clock; one thread.
 */
#ifndef NK_HTTP_WS_H
#define NK_HTTP_WS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define NK_WS_MESSAGE_MAX (1024u * 1024u)
#define NK_WS_FRAGMENTS_MAX 1024u
#define NK_WS_CONTROL_MAX 125u
#define NK_WS_MASK_SIZE 4

/* Those that have one have the value of their opcode. */
enum nk_ws_kind {
    NK_WS_MORE = 0, /* all input is used up */
    NK_WS_TEXT = 1,
    NK_WS_BINARY = 2,
    NK_WS_CLOSE = 8,
    NK_WS_PING = 9,
    NK_WS_PONG = 10,
    NK_WS_BROKEN = 16, /* nothing more can be read; `code` says what to close with */
};

enum nk_ws_code {
    NK_WS_NO_CODE = 0, /* a close frame without one; never on the wire */
    NK_WS_NORMAL = 1000,
    NK_WS_GOING_AWAY = 1001,
    NK_WS_PROTOCOL = 1002,
    NK_WS_BAD_DATA = 1007,
    NK_WS_POLICY = 1008,
    NK_WS_TOO_LARGE = 1009,
    NK_WS_INTERNAL = 1011,
};

struct nk_ws_limits {
    size_t message_max; /* bytes of a frame, and of a message */
    unsigned fragments_max;
};

struct nk_ws {
    struct nk_ws_limits limits;
    bool masked;           /* what is read must be: we are the server */
    bool over;             /* a close frame came, or it is broken */
    bool given;            /* `message` was handed out and goes at the next read */
    bool fin;              /* of the frame that is being read */
    uint8_t head[14];      /* of the frame, as far as it came */
    uint8_t head_len;      /* bytes in it */
    uint8_t head_need;     /* bytes it will have; 0: not known yet */
    uint8_t opcode;        /* of the frame */
    uint8_t control_len;   /* bytes in `control` */
    unsigned mask_at;      /* bytes of the payload so far, modulo 4 */
    uint64_t left;         /* bytes of the payload to come */
    enum nk_ws_kind kind;  /* of the message; NK_WS_MORE: none has begun */
    unsigned fragments;    /* of the message */
    size_t checked;        /* bytes of the text that are whole characters */
    struct nk_buf message; /* owned */
    uint8_t control[NK_WS_CONTROL_MAX];
};

struct nk_ws_item {
    enum nk_ws_kind kind;
    const uint8_t *data; /* borrowed until the next read: a message, a ping's payload, a reason */
    size_t len;
    unsigned code; /* of CLOSE and BROKEN */
};

/* NULL: the limits above. */
void nk_ws_init(struct nk_ws *ws, bool server, const struct nk_ws_limits *limits);
void nk_ws_fini(struct nk_ws *ws);

/* Takes from *at, at most *left bytes, moving both, until there is something to tell. */
enum nk_ws_kind nk_ws_read(struct nk_ws *ws, const uint8_t **at, size_t *left,
                           struct nk_ws_item *out);

/* A whole frame; `mask` is NULL on the server's side. A close frame with NK_WS_NO_CODE is empty; a
 * reason is cut to what fits. */
void nk_ws_add(struct nk_buf *out, enum nk_ws_kind kind, const void *data, size_t len,
               const uint8_t *mask);
void nk_ws_add_close(struct nk_buf *out, unsigned code, const char *reason, const uint8_t *mask);

/* A frame of the server whose payload the caller writes straight into `out` in between; what
 * _begin gave goes to _end. */
size_t nk_ws_begin(struct nk_buf *out);
void nk_ws_end(struct nk_buf *out, size_t at, enum nk_ws_kind kind);

/* Whether a close frame may carry it. */
bool nk_ws_code_valid(unsigned code);

#endif
