/*
 * multipart/form-data (RFC 7578), read as it comes: parts and their bytes, nothing held back but the
 * head of a part and what may be the beginning of a boundary.
 *
 * Bounds: a boundary of 70 characters, 8 KiB of headers a part, 10,000 parts. Strict where clients
 * agree: lines end in CRLF, no folded headers. Owned by one thread; knows no requests.
 */
#ifndef NK_HTTP_MULTIPART_H
#define NK_HTTP_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define NK_MULTIPART_BOUNDARY_MAX 70
#define NK_MULTIPART_HEAD_MAX 8192
#define NK_MULTIPART_PARTS_MAX 10000

enum nk_multipart_event {
    NK_MULTIPART_MORE,     /* the input is used up */
    NK_MULTIPART_PART,     /* a part begins: name, filename, type */
    NK_MULTIPART_DATA,     /* some of its bytes: data, len */
    NK_MULTIPART_PART_END, /* it is complete */
    NK_MULTIPART_END,      /* the last boundary was seen; what follows is ignored */
    NK_MULTIPART_FAIL,     /* err is filled; nothing more is read */
};

enum nk_multipart_state {
    NK_MULTIPART_AT_PREAMBLE,
    NK_MULTIPART_AT_LINE, /* what follows a boundary on its line */
    NK_MULTIPART_AT_HEAD,
    NK_MULTIPART_AT_BODY,
    NK_MULTIPART_AT_EPILOGUE,
    NK_MULTIPART_AT_FAILURE,
};

struct nk_multipart {
    enum nk_multipart_state state;
    char mark[NK_MULTIPART_BOUNDARY_MAX + 5]; /* CR LF - - boundary */
    size_t mark_len;
    size_t matched; /* bytes of the mark at the end of what was read */
    size_t
        assumed; /* of those, bytes that were not there: a boundary may begin without a line end */
    size_t owed; /* bytes of the mark that turned out to be data, from `owed_from` */
    size_t owed_from;
    unsigned parts;
    struct nk_buf head; /* owned */
    /* of the part; in `head`, until the next one begins */
    const char *name; /* NULL: none */
    const char *filename;
    size_t filename_len;
    const char *type; /* NULL: none given */
    /* of NK_MULTIPART_DATA; borrowed from the input or from `mark` */
    const uint8_t *data;
    size_t len;
};

/* From the Content-Type of the request. NK_BAD_REQUEST where there is no usable boundary. */
int nk_multipart_init(struct nk_multipart *m, const char *content_type, struct nk_err *err);
void nk_multipart_fini(struct nk_multipart *m); /* a zeroed one is fine */

/* Reads on; *data and *len go forward over what was used. */
enum nk_multipart_event nk_multipart_next(struct nk_multipart *m, const uint8_t **data, size_t *len,
                                          struct nk_err *err);

#endif
