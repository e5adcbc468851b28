/*
 * Server-Sent Events, read (WHATWG HTML, section 9.2.6), as the bytes arrive.
 *
 * The caller appends bytes to `in`, cut anywhere, and takes events until none is whole. An event of
 * more than `max` bytes is an error. Comments pass unseen. Owned by one thread.
 */
#ifndef NK_CLI_SSE_READ_H
#define NK_CLI_SSE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define NK_SSE_READ_NO_ID UINT64_MAX

struct nk_sse_event {
    const char
        *event;       /* borrowed, like data: until the next call; "message" where none was named */
    const char *data; /* ends with a NUL that is not counted */
    size_t len;
    uint64_t id; /* the last one seen; NK_SSE_READ_NO_ID: none yet, or not a number */
};

struct nk_sse_read {
    struct nk_buf in;
    struct nk_buf data; /* of the event that is being read */
    char event[64];
    uint64_t id;
    size_t max;
    size_t scanned; /* bytes of `in` that hold no line end */
    bool begun;     /* the optional byte order mark has been dealt with */
    bool after_cr;  /* a line feed here belongs to the line before */
    bool given;     /* `data` was handed out and is cleared at the next call */
};

void nk_sse_read_init(struct nk_sse_read *r, size_t max);
void nk_sse_read_fini(struct nk_sse_read *r);

/* 1 with an event, 0 when more bytes are needed, -1 with err. */
int nk_sse_read_next(struct nk_sse_read *r, struct nk_sse_event *out, struct nk_err *err);

#endif
