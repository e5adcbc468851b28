/*
 * Notes between the daemon and its archive worker: pairs of a key and bytes.
 *
 * "LLLLLLLL" (the length, eight hexadecimal digits), then "key=value\0" one after another. Values are
 * bytes without a NUL, so that a path needs no escapes. The daemon does not trust what comes: a user
 * may have got hold of the worker. No I/O; the buffers are the caller's.
 */
#ifndef NK_FILES_TAR_NOTE_H
#define NK_FILES_TAR_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define NK_TAR_NOTE_HEAD 8
#define NK_TAR_NOTE_MAX (1024u * 1024u)

/* Writing: begin, add, end. Errors are those of the buffer. */
size_t nk_tar_note_begin(struct nk_buf *out); /* what _end is given */
void nk_tar_note_add(struct nk_buf *out, const char *key, const char *value);
void nk_tar_note_add_u64(struct nk_buf *out, const char *key, uint64_t value);
void nk_tar_note_end(struct nk_buf *out, size_t begun);

/* Reading: a whole note at the front of `in`. 1: *out_text has *out_len bytes, the last of them a
 * NUL where there are any, and the whole takes NK_TAR_NOTE_HEAD more; 0: more must come; -EBADMSG. */
int nk_tar_note_find(const struct nk_buf *in, const char **out_text, size_t *out_len);

/* The length a head tells, or -EBADMSG. */
long nk_tar_note_length(const char head[NK_TAR_NOTE_HEAD]);

/* The next pair at *at, which moves on; false at `end`. A pair without '=' has an empty value. */
struct nk_tar_pair {
    const char *key; /* borrowed, not NUL-terminated */
    size_t key_len;
    const char *value; /* borrowed */
};
bool nk_tar_note_next(const char **at, const char *end, struct nk_tar_pair *out);
bool nk_tar_note_is(const struct nk_tar_pair *pair, const char *key);
/* A decimal number; 0 where it is none or too large. */
uint64_t nk_tar_note_u64(const struct nk_tar_pair *pair);

#endif
