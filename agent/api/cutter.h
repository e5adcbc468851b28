/*
 * Cuts a log into events: which bytes go out next, and whether as text or as base64.
 *
 * Pure: looks at the log and a position, changes neither. A piece is of one stream. It is text when
 * its bytes are valid UTF-8; a character of which only the beginning is there yet is held back, so
 * that neither half of it becomes an event of its own. Held bytes are given out as they are (never
 * dropped) when bytes of the other stream follow or when the caller says that waiting is over.
 * No allocation, no I/O; used by streams, followers and WebSockets.
 */
#ifndef NK_API_CUTTER_H
#define NK_API_CUTTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/outlog.h"

#define NK_CUTTER_MAX (64u * 1024u) /* bytes of output in one event */
#define NK_CUTTER_MIN 4             /* the longest character */
#define NK_CUTTER_HOLD_MS 100

enum nk_cut {
    NK_CUT_NOTHING, /* the position is at the end */
    NK_CUT_HELD,    /* only the beginning of a character is there */
    NK_CUT_TEXT,
    NK_CUT_BYTES,
    NK_CUT_GAP, /* the bytes from `from` to `to` are no longer held */
};

struct nk_cutter_piece {
    enum nk_stream stream;
    const uint8_t *data; /* borrowed: from the log until its next write, or `seam` */
    size_t len;
    uint64_t from, to; /* offsets: of data[0], and after the last byte */
    uint8_t seam[NK_CUTTER_MIN];
};

/* What to send next from `pos`, at most `max` bytes (NK_CUTTER_MIN or more), none at or after `end`.
 * `flush`: do not hold back. `*out` is filled for TEXT, BYTES and GAP. */
enum nk_cut nk_cutter_next(const struct nk_outlog *log, uint64_t pos, uint64_t end, size_t max,
                           bool flush, struct nk_cutter_piece *out);

#endif
