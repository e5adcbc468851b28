#include "api/cutter.h"

#include <assert.h>
#include <string.h>

#include "base/utf8.h"

static enum nk_cut piece(struct nk_cutter_piece *out, enum nk_cut kind, const uint8_t *data,
                         size_t len)
{
    out->data = data;
    out->len = len;
    out->to = out->from + len;
    return kind;
}

/* At most three bytes that begin a character: its rest may lie on the other side of the ring's
 * seam, where it is not contiguous with them. */
static enum nk_cut partial(const struct nk_outlog *log, const struct nk_outlog_run *run, size_t len,
                           uint64_t end, bool flush, struct nk_cutter_piece *out)
{
    struct nk_outlog_run rest;
    size_t have = len;
    size_t valid;

    memcpy(out->seam, run->data, len);
    if (!run->turns && run->offset + len < end &&
        nk_outlog_at(log, run->offset + len, NK_CUTTER_MIN - len, &rest) &&
        rest.stream == run->stream) {
        size_t more = rest.len;

        if (more > end - rest.offset)
            more = (size_t)(end - rest.offset);
        memcpy(out->seam + len, rest.data, more);
        have += more;
    }
    valid = nk_utf8_valid_prefix(out->seam, have);
    if (valid > 0)
        return piece(out, NK_CUT_TEXT, out->seam, valid);
    if (nk_utf8_partial_tail(out->seam, have) < have)
        return piece(out, NK_CUT_BYTES, out->seam, len);
    if (flush || run->turns)
        return piece(out, NK_CUT_BYTES, out->seam, have);
    return NK_CUT_HELD;
}

enum nk_cut nk_cutter_next(const struct nk_outlog *log, uint64_t pos, uint64_t end, size_t max,
                           bool flush, struct nk_cutter_piece *out)
{
    struct nk_outlog_run run;
    size_t len, valid, tail;

    assert(max >= NK_CUTTER_MIN);
    if (pos >= end)
        return NK_CUT_NOTHING;
    if (!nk_outlog_at(log, pos, max, &run) || run.missed > 0) {
        /* Where nothing is held any more, all up to the end is missing. */
        out->from = pos;
        out->to = log->start < end ? log->start : end;
        return out->to > pos ? NK_CUT_GAP : NK_CUT_NOTHING;
    }
    out->stream = run.stream;
    out->from = run.offset;
    len = run.len < end - run.offset ? run.len : (size_t)(end - run.offset);
    valid = nk_utf8_valid_prefix(run.data, len);
    if (valid == len)
        return piece(out, NK_CUT_TEXT, run.data, len);
    tail = nk_utf8_partial_tail(run.data, len);
    if (valid > 0 && valid + tail == len)
        return piece(out, NK_CUT_TEXT, run.data, valid);
    if (tail < len)
        return piece(out, NK_CUT_BYTES, run.data, len - tail);
    return partial(log, &run, len, end, flush, out);
}
