/*
 * One HTTP/1.1 answer, read by a client: status line, headers, body by its framing.
 *
 * Incremental and strict: CRLF line ends, one Content-Length, chunked as the only coding, a head
 * of 16 KiB at most. Works on buffers alone and never touches a socket. Used from one thread.
 * A zeroed struct is a valid reader before its first byte.
 */
#ifndef NK_HTTP_RESPONSE_H
#define NK_HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define NK_RESPONSE_HEAD_MAX (16u * 1024u)
#define NK_RESPONSE_LINES_MAX 100

enum nk_response_framing {
    NK_RESPONSE_NONE,
    NK_RESPONSE_LENGTH,
    NK_RESPONSE_CHUNKED,
    NK_RESPONSE_EOF, /* the body lasts as long as the connection; also what follows a 101 */
};

enum nk_response_chunk {
    NK_CHUNK_SIZE,
    NK_CHUNK_EXT,
    NK_CHUNK_SIZE_LF,
    NK_CHUNK_DATA,
    NK_CHUNK_DATA_CR,
    NK_CHUNK_DATA_LF,
    NK_CHUNK_TRAILER,      /* at the start of a line */
    NK_CHUNK_TRAILER_LINE, /* inside one */
    NK_CHUNK_TRAILER_LF,
    NK_CHUNK_LAST_LF,
};

struct nk_response_line {
    const char *name; /* borrowed: into text */
    const char *value;
};

struct nk_response {
    bool to_head;      /* set by the caller: HEAD was asked, no body follows */
    bool with_interim; /* set by the caller: it wants answers 1xx too */
    bool old;          /* HTTP/1.0 */
    bool done;         /* the body is complete */
    int status;        /* 0 until the head is complete */
    char *text;        /* owned: the head, cut into strings */
    struct nk_response_line line[NK_RESPONSE_LINES_MAX];
    size_t line_count;
    size_t scanned; /* bytes of an unfinished head that hold no end */
    unsigned interim;
    int64_t length; /* of Content-Length, also where no body follows; -1: none */
    enum nk_response_framing framing;
    enum nk_response_chunk chunk;
    char *ext;        /* owned: extensions of the last chunk that had some; NULL: none had */
    unsigned digits;  /* of the chunk size read so far */
    size_t line_size; /* bytes of chunk extension or trailers so far */
    uint64_t left;    /* bytes still to come of the body or the chunk */
};

void nk_response_fini(struct nk_response *r);

/* Consumes a whole head from `in`. Answers 1xx but 101 are passed over, or come one by one where they
 * are wanted: the next call goes on behind them. */
int nk_response_read_head(struct nk_response *r, struct nk_buf *in, bool *out_done,
                          struct nk_err *err);
/* How many bytes that come now are body and nothing else, and may be read to where they belong; then
 * nk_response_took. 0: they must be taken apart by nk_response_read_body. */
size_t nk_response_direct(const struct nk_response *r);
void nk_response_took(struct nk_response *r, size_t n);
/* Moves the body from `in` to `out`. Bytes behind a complete body stay in `in`. */
int nk_response_read_body(struct nk_response *r, struct nk_buf *in, struct nk_buf *out,
                          struct nk_err *err);
/* The connection has ended: -1 unless the answer is complete with that. `err` is what the server said of
 * it, where it did (NK_PULL_BROKEN). */
int nk_response_end(struct nk_response *r, struct nk_err *err);

/* Of any letter case; NULL where absent. Borrowed: lives as long as the reader. */
const char *nk_response_header(const struct nk_response *r, const char *name);

#endif
