/*
 * The messages of a session, each written in one place as a frame.
 *
 * Errors are those of the buffer. Loop thread only; owns nothing.
 */
#ifndef NK_API_WIRE_WS_H
#define NK_API_WIRE_WS_H

#include <stddef.h>
#include <stdint.h>

#include "api/cutter.h"
#include "base/buf.h"
#include "base/err.h"

struct nk_display;
struct nk_process;

void nk_wire_ws_started(struct nk_buf *out, const struct nk_process *p, uint64_t offset);
void nk_wire_ws_attached(struct nk_buf *out, const struct nk_process *p);
void nk_wire_ws_output(struct nk_buf *out, enum nk_cut kind, const struct nk_cutter_piece *piece);
/* Binary: the stream in one byte, the offset behind the data in eight, the data. */
void nk_wire_ws_bytes(struct nk_buf *out, const struct nk_cutter_piece *piece);
void nk_wire_ws_display(struct nk_buf *out, const struct nk_display *d);
void nk_wire_ws_gap(struct nk_buf *out, uint64_t from, uint64_t to);
void nk_wire_ws_ack(struct nk_buf *out, uint64_t offset);
void nk_wire_ws_stdin_error(struct nk_buf *out, enum nk_code code);
void nk_wire_ws_exit(struct nk_buf *out, struct nk_process *p);
void nk_wire_ws_error(struct nk_buf *out, const struct nk_err *err);

#endif
