#include "process/outlog.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 512u
#define WORD_BITS 64u

static size_t round_up_pow2(size_t n)
{
    size_t size = FIRST_SIZE;

    while (size < n && size <= SIZE_MAX / 2)
        size *= 2;
    return size;
}

void nk_outlog_init(struct nk_outlog *log, size_t cap)
{
    *log = (struct nk_outlog){.cap = round_up_pow2(cap)};
}

void nk_outlog_fini(struct nk_outlog *log)
{
    free(log->data);
    free(log->marks);
    log->data = NULL;
    log->marks = NULL;
    log->size = 0;
}

static void set_bits(uint64_t *marks, size_t at, size_t len, bool on)
{
    while (len > 0) {
        size_t bit = at % WORD_BITS;
        size_t n = WORD_BITS - bit < len ? WORD_BITS - bit : len;
        uint64_t mask = (n == WORD_BITS ? UINT64_MAX : ((uint64_t)1 << n) - 1) << bit;

        if (on)
            marks[at / WORD_BITS] |= mask;
        else
            marks[at / WORD_BITS] &= ~mask;
        at += n;
        len -= n;
    }
}

static bool get_bit(const uint64_t *marks, size_t at)
{
    return marks[at / WORD_BITS] >> (at % WORD_BITS) & 1;
}

/* How many bits from `at` on, at most `len`, equal the one at `at`. */
static size_t same_bits(const uint64_t *marks, size_t at, size_t len)
{
    bool on = get_bit(marks, at);
    size_t done = 0;

    while (done < len) {
        size_t bit = (at + done) % WORD_BITS;
        uint64_t word = marks[(at + done) / WORD_BITS];
        uint64_t other = (on ? ~word : word) >> bit;

        if (other) {
            size_t n = done + (size_t)__builtin_ctzll(other);

            return n < len ? n : len;
        }
        done += WORD_BITS - bit;
    }
    return len;
}

static enum nk_stream stream_at(const struct nk_outlog *log, uint64_t pos)
{
    if (!log->marks)
        return NK_STDOUT;
    return get_bit(log->marks, (size_t)(pos & (log->size - 1))) ? NK_STDERR : NK_STDOUT;
}

/* Moves the held bytes into fresh memory of `size`, which has room for all of them. */
static bool resize(struct nk_outlog *log, size_t size)
{
    struct nk_outlog fresh = *log;
    struct nk_outlog_run run;

    fresh.data = malloc(size);
    fresh.marks = log->marks ? calloc(size / WORD_BITS, sizeof *fresh.marks) : NULL;
    fresh.size = size;
    if (!fresh.data || (log->marks && !fresh.marks)) {
        nk_outlog_fini(&fresh);
        return false;
    }
    fresh.end = log->start;
    while (nk_outlog_at(log, fresh.end, log->size, &run)) {
        size_t at = (size_t)(fresh.end & (size - 1));
        size_t n = run.len < size - at ? run.len : size - at;

        memcpy(fresh.data + at, run.data, n);
        if (fresh.marks)
            set_bits(fresh.marks, at, n, run.stream == NK_STDERR);
        fresh.end += n;
    }
    nk_outlog_fini(log);
    *log = fresh;
    return true;
}

/* The size at which `held` and `want` bytes fit, as far as the bound allows. */
static size_t wanted_size(const struct nk_outlog *log, uint64_t held, size_t want)
{
    size_t size = log->size ? log->size : FIRST_SIZE;

    while (size < log->cap && size - held < want)
        size *= 2;
    return size;
}

uint8_t *nk_outlog_reserve(struct nk_outlog *log, size_t want, uint64_t keep, size_t *out_len)
{
    uint64_t kept = keep > log->start ? keep : log->start;
    uint64_t held = log->end - (kept < log->end ? kept : log->end);
    uint64_t history = log->end - log->start;
    size_t size = wanted_size(log, history, want);
    size_t at, room;

    *out_len = 0;
    if (size > log->size && !resize(log, size) && log->size == 0)
        return NULL;
    if (held >= log->size)
        return NULL;
    at = (size_t)(log->end & (log->size - 1));
    room = log->size - (size_t)held;
    if (room > log->size - at)
        room = log->size - at;
    *out_len = room < want ? room : want;
    return log->data + at;
}

static bool need_marks(struct nk_outlog *log, enum nk_stream stream)
{
    if (log->marks || stream == NK_STDOUT)
        return log->marks != NULL;
    log->marks = calloc(log->size / WORD_BITS, sizeof *log->marks);
    return log->marks != NULL;
}

void nk_outlog_commit(struct nk_outlog *log, enum nk_stream stream, size_t len)
{
    if (need_marks(log, stream))
        set_bits(log->marks, (size_t)(log->end & (log->size - 1)), len, stream == NK_STDERR);
    log->end += len;
    if (log->end - log->start > log->size)
        log->start = log->end - log->size;
}

void nk_outlog_write(struct nk_outlog *log, enum nk_stream stream, const void *data, size_t len)
{
    const uint8_t *from = data;

    while (len > 0) {
        size_t n;
        uint8_t *to = nk_outlog_reserve(log, len, log->end, &n);

        if (!to)
            return;
        memcpy(to, from, n);
        nk_outlog_commit(log, stream, n);
        from += n;
        len -= n;
    }
}

bool nk_outlog_at(const struct nk_outlog *log, uint64_t pos, size_t max, struct nk_outlog_run *out)
{
    uint64_t from = pos > log->start ? pos : log->start;
    size_t at, len;

    if (from >= log->end || max == 0)
        return false;
    at = (size_t)(from & (log->size - 1));
    len = log->size - at;
    if (len > log->end - from)
        len = (size_t)(log->end - from);
    if (len > max)
        len = max;
    if (log->marks)
        len = same_bits(log->marks, at, len);
    *out = (struct nk_outlog_run){.data = log->data + at,
                                  .len = len,
                                  .stream = stream_at(log, from),
                                  .offset = from,
                                  .missed = from - pos};
    out->turns = from + len < log->end && stream_at(log, from + len) != out->stream;
    return true;
}

void nk_outlog_drop(struct nk_outlog *log)
{
    nk_outlog_fini(log);
    log->start = log->end;
}

void nk_outlog_shrink(struct nk_outlog *log)
{
    uint64_t held = log->end - log->start;
    size_t size = WORD_BITS;

    if (held == 0) {
        nk_outlog_drop(log);
        return;
    }
    while (size < held)
        size *= 2;
    if (size < log->size)
        (void)resize(log, size);
}

void nk_outlog_forget(struct nk_outlog *log, uint64_t keep)
{
    if (keep > log->end)
        keep = log->end;
    if (keep > log->start)
        log->start = keep;
    if (log->start < log->end)
        nk_outlog_shrink(log);
}

size_t nk_outlog_memory(const struct nk_outlog *log)
{
    return log->size;
}
