/*
 * The client's side of a WebSocket, for the verbs of the command line, on a connection of
 * http/client.h.
 *
 * Messages out are queued as masked frames and written as the socket takes them, so that a caller can
 * go on reading meanwhile; messages in are whole. Pings are answered. One thread; owned by the
 * caller.
 */
#ifndef NK_HTTP_WS_CLIENT_H
#define NK_HTTP_WS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "http/client.h"
#include "http/ws.h"

#define NK_WS_CLIENT_KEY_ROOM 25

struct nk_ws_client {
    struct nk_client *http; /* borrowed: outlives it */
    struct nk_ws in;
    struct nk_buf bytes; /* owned: read and not taken apart */
    struct nk_buf out;   /* owned: frames that the socket has not taken */
    char key[NK_WS_CLIENT_KEY_ROOM];
    bool ended; /* the server has sent its last byte */
};

/* Asks for the upgrade of `path`. */
int nk_ws_client_ask(struct nk_ws_client *c, struct nk_client *http, const char *path,
                     struct nk_err *err);
/* Reads the answer. *out_status other than 101: a plain answer, whose body has not been read. */
int nk_ws_client_accept(struct nk_ws_client *c, int *out_status, struct nk_err *err);
void nk_ws_client_fini(struct nk_ws_client *c); /* of a zeroed one too */

/* Queues a message, or a close frame with a code. */
int nk_ws_client_send(struct nk_ws_client *c, enum nk_ws_kind kind, const void *data, size_t len,
                      struct nk_err *err);
int nk_ws_client_close(struct nk_ws_client *c, unsigned code, struct nk_err *err);
size_t nk_ws_client_queued(const struct nk_ws_client *c);
/* Writes what the socket takes now. */
int nk_ws_client_flush(struct nk_ws_client *c, struct nk_err *err);

/* Reads once, waiting if there is nothing. */
int nk_ws_client_read(struct nk_ws_client *c, struct nk_err *err);
/* The next message, close or break of what was read; NK_WS_MORE: read again. */
enum nk_ws_kind nk_ws_client_next(struct nk_ws_client *c, struct nk_ws_item *out);

#endif
