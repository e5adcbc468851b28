/*
 * From the head of a request to its handler, by the rules of its row.
 *
 * Order: the row is looked up, the gate judges, then 404 or 405, the query, the upgrade, the body's
 * rules, the expectation; then the handler, or the body first. Called by the connection as the
 * parser goes on; an error is answered here. Loop thread only.
 */
#ifndef NK_HTTP_DISPATCH_H
#define NK_HTTP_DISPATCH_H

#include <stddef.h>
#include <stdint.h>

struct nk_err;
struct nk_req;

void nk_dispatch_head(struct nk_req *req);
/* The gate has judged late (nk_req_admit). */
void nk_dispatch_admit(struct nk_req *req, const struct nk_err *refused);
void nk_dispatch_data(struct nk_req *req, const uint8_t *data, size_t len);
void nk_dispatch_end(struct nk_req *req);
/* Says 100 Continue where the client waits for it and the body is wanted now. */
void nk_dispatch_continue(struct nk_req *req);

#endif
