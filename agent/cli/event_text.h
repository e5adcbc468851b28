/*
 * The bytes inside an output event: `{"text": …}` or `{"base64": …}`.
 *
 * A reader of its own, because here `\u0000` is a byte like any other (a command may print it),
 * and because a stream's speed is this function's speed. Other scalar members are passed over.
 * Pure function.
 */
#ifndef NK_CLI_EVENT_TEXT_H
#define NK_CLI_EVENT_TEXT_H

#include <stddef.h>

#include "base/buf.h"

/* Appends to `out`. 0; -EINVAL for anything else than such an object; -ENOMEM. */
int nk_event_text_decode(const char *json, size_t len, struct nk_buf *out);

#endif
