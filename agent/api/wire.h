/*
 * The JSON shapes of the protocol, each written in one place.
 *
 * Writers of objects add members only: the caller opens and closes the braces, so that one shape can
 * contain another. Errors are those of the buffer. Loop thread only; owns nothing.
 */
#ifndef NK_API_WIRE_H
#define NK_API_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/cutter.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json_out.h"

struct nk_process;
struct nk_req;

/* The result of an ended command. `output`: with what it wrote (it was started with `capture`). */
void nk_wire_result(struct nk_json_out *o, struct nk_process *p, bool output);

#define NK_WIRE_BUNDLE_MAX (400u * 1024u) /* in a message of a session */

enum nk_wire_with { NK_WIRE_OUTPUT = 1, NK_WIRE_IMAGES = 2 };
/* The same of code; `with`: what it wrote, the bytes of images. */
void nk_wire_code_result(struct nk_json_out *o, struct nk_process *p, unsigned with);

/* A process as lists and details show it; `ports` are TCP ports its tree listens on. */
void nk_wire_process(struct nk_json_out *o, const struct nk_process *p, const uint16_t *ports,
                     size_t port_count);

/* `text` or `base64`, by what the cutter said. */
void nk_wire_output(struct nk_json_out *o, enum nk_cut kind, const struct nk_cutter_piece *piece);

struct nk_display;

/* Events of a stream. */
void nk_wire_sse_display(struct nk_buf *out, const struct nk_display *d);
void nk_wire_sse_started(struct nk_buf *out, const struct nk_process *p, uint64_t offset);
void nk_wire_sse_output(struct nk_buf *out, enum nk_cut kind, const struct nk_cutter_piece *piece);
void nk_wire_sse_gap(struct nk_buf *out, uint64_t from, uint64_t to);
void nk_wire_sse_exit(struct nk_buf *out, struct nk_process *p);
void nk_wire_sse_code_result(struct nk_buf *out, struct nk_process *p);
void nk_wire_sse_error(struct nk_buf *out, uint64_t offset, const struct nk_err *err);

/* Answers with the object of a process, without its ports. */
void nk_wire_reply_process(struct nk_req *req, int status, const struct nk_process *p);

/* Answers 200-like with one JSON object; `body` is taken. */
void nk_wire_reply(struct nk_req *req, int status, struct nk_buf *body);

#endif
