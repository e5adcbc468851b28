/*
 * The handshake of a WebSocket (RFC 6455 section 4), on the server's side.
 *
 * Pure functions on the head of a request; one thread.
 */
#ifndef NK_HTTP_WS_ACCEPT_H
#define NK_HTTP_WS_ACCEPT_H

#include <stdbool.h>

#include "base/err.h"
#include "http/head.h"

#define NK_WS_KEY_SIZE 24 /* characters: 16 bytes in base64 */
#define NK_WS_ACCEPT_ROOM 29

bool nk_ws_accept_asked(const struct nk_head *head); /* an upgrade to it, good or bad */

/* Whether it is one that can be accepted; NK_UPGRADE_REQUIRED where it asks for something else. */
int nk_ws_accept_check(const struct nk_head *head, struct nk_err *err);

/* The answer to a key of NK_WS_KEY_SIZE characters. */
void nk_ws_accept_key(const char *key, char out[NK_WS_ACCEPT_ROOM]);

/* Whether the client offers that subprotocol, in this spelling. */
bool nk_ws_accept_offers(const struct nk_head *head, const char *protocol);

#endif
