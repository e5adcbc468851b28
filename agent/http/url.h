/*
 * A request target, taken apart: path, query, and the authority of an absolute form.
 *
 * Pure functions on the text of the parser.
 */
#ifndef NK_HTTP_URL_H
#define NK_HTTP_URL_H

#include "base/buf.h"
#include "base/err.h"

struct nk_head;

/* The target lies at the front of `text` and ends in a NUL; it is cut in place. Fills path, query and
 * authority of `head`. Refuses bad escapes, `%00` and what is neither form. */
int nk_url_split(struct nk_buf *text, struct nk_head *head, struct nk_err *err);

#endif
