/*
 * One-time tokens that open a WebSocket where a client cannot send headers (a page in a browser).
 *
 * Each opens one, within NK_TICKETS_MS, as the identity that asked for it. Only its SHA-256 is kept.
 * Bounded: NK_TICKETS_OWNER that are not used yet for each identity, NK_TICKETS_MAX in all. Owned by
 * app; loop thread only.
 */
#ifndef NK_API_TICKETS_H
#define NK_API_TICKETS_H

#include <stdint.h>

#include "base/err.h"
#include "base/id.h"

struct nk_tickets;

#define NK_TICKETS_MS 30000
#define NK_TICKETS_OWNER 512
#define NK_TICKETS_MAX 4096

int nk_tickets_new(struct nk_tickets **out); /* 0 or -ENOMEM */
void nk_tickets_free(struct nk_tickets *t);

/* 0, or -1 with NK_OVERLOADED. `identity` is compared, never looked into. */
int nk_tickets_issue(struct nk_tickets *t, void *identity, char out_token[NK_ID_MAX],
                     struct nk_err *err);

/* Uses it up. 0, or -1: there is none such, or no longer. */
int nk_tickets_take(struct nk_tickets *t, const char *token, void **out_identity);

#endif
