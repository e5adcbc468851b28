/*
 * What a command wrote, in the order it was read: a ring of the newest bytes of stdout and stderr
 * together, with every position absolute.
 *
 * Offset 0 is the first byte ever read from either stream; an offset never changes its meaning.
 * Which stream a byte came from is one bit a byte, kept only once a stderr byte has come.
 * A reader keeps its own position; behind `start` it learns how much it missed.
 *
 * Grown on demand up to `cap`, by doubling; nothing is allocated before the first byte. Where growing
 * fails the ring stays as it is and forgets older bytes instead.
 * Owned by one thread (the loop's). No I/O.
 */
#ifndef NK_PROCESS_OUTLOG_H
#define NK_PROCESS_OUTLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nk_stream { NK_STDOUT = 1, NK_STDERR = 2 };

struct nk_outlog {
    uint8_t *data;   /* owned; NULL before the first byte and after nk_outlog_drop */
    uint64_t *marks; /* owned; one bit a byte of data: it came from stderr; NULL: none did */
    size_t size;     /* of data, a power of two */
    size_t cap;      /* size never grows past it (rounded up to a power of two) */
    uint64_t start;  /* first offset still held */
    uint64_t end;    /* bytes ever written */
};

void nk_outlog_init(struct nk_outlog *log, size_t cap);
void nk_outlog_fini(struct nk_outlog *log);

/* Room to read into directly: a contiguous span of at least `want` bytes if the ring can have it
 * (at least 1 always, once memory could be had; else NULL). Older bytes are forgotten only at
 * commit. Bytes from `keep` on are never given out for overwriting: 0 room is NULL and *out_len 0. */
uint8_t *nk_outlog_reserve(struct nk_outlog *log, size_t want, uint64_t keep, size_t *out_len);
void nk_outlog_commit(struct nk_outlog *log, enum nk_stream stream, size_t len);
void nk_outlog_write(struct nk_outlog *log, enum nk_stream stream, const void *data, size_t len);

struct nk_outlog_run {
    const uint8_t *data; /* borrowed until the next write */
    size_t len;          /* contiguous, of one stream, at most the asked maximum */
    enum nk_stream stream;
    uint64_t offset; /* of data[0] */
    uint64_t missed; /* bytes between the asked position and `offset` that are gone */
    bool turns;      /* the byte after this run is held and belongs to the other stream */
};

/* The run at `pos`, or false when there is nothing at or after it. */
bool nk_outlog_at(const struct nk_outlog *log, uint64_t pos, size_t max, struct nk_outlog_run *out);

void nk_outlog_drop(struct nk_outlog *log); /* forgets all bytes, keeps the offsets */
/* Forgets what lies before `keep`, and gives its memory back. */
void nk_outlog_forget(struct nk_outlog *log, uint64_t keep);
void nk_outlog_shrink(struct nk_outlog *log); /* gives back what an ended log does not need */
size_t nk_outlog_memory(const struct nk_outlog *log); /* of the bytes; marks are an eighth on top */

#endif
