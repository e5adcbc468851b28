/*
 * The head of an answer: status line, the headers that are the same for all, those of this one.
 *
 * Decides how the body is framed and whether the connection lives on. Writes into the output's head;
 * a failed buffer is left to the caller. Loop thread only.
 */
#ifndef NK_HTTP_REPLY_HEAD_H
#define NK_HTTP_REPLY_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nk_buf;
struct nk_req;

/* `length` -1: not known before. `body_room`: bytes that the caller will add behind. */
void nk_reply_head_write(struct nk_req *req, const char *type, int64_t length, size_t body_room);

void nk_reply_head_interim(struct nk_buf *out, int status, const struct nk_buf *lines);

/* By method and status; valid once the status is set. */
bool nk_reply_head_has_body(const struct nk_req *req);

#endif
