/*
 * Server-Sent Events, written (WHATWG HTML, section 9.2): `event:`, `id:`, one `data:` line.
 *
 * Pure functions on a buffer: begin, let the caller write JSON without line feeds, end.
 */
#ifndef NK_HTTP_SSE_H
#define NK_HTTP_SSE_H

#include <stdint.h>

#include "base/buf.h"

#define NK_SSE_NO_ID UINT64_MAX
#define NK_SSE_KEEPALIVE_MS 15000
#define NK_SSE_PROBE_MS 500 /* comments to a client that has shut its sending side */

void nk_sse_begin(struct nk_buf *out, const char *event, uint64_t id);
void nk_sse_end(struct nk_buf *out);
void nk_sse_comment(struct nk_buf *out, const char *text);

#endif
