#include "process/stdin.h"

#include "process/live.h"

bool nk_stdin_is_open(const struct nk_process *p)
{
    return p->live && !p->over && p->live->in.fd >= 0 && !p->live->in.close_after;
}

size_t nk_stdin_room(const struct nk_process *p)
{
    size_t queued = p->live ? nk_buf_left(&p->live->in.pending) : 0;

    return queued < NK_STDIN_MAX ? NK_STDIN_MAX - queued : 0;
}

uint64_t nk_stdin_offset(const struct nk_process *p)
{
    return p->input_end;
}

/* Its answer may have been lost: all that it would bring is there. */
static bool repeats_the_end(const struct nk_process *p, const struct nk_stdin_piece *piece)
{
    return piece->close && piece->offset != NK_STDIN_NEXT && piece->offset <= p->input_end &&
           piece->len == p->input_end - piece->offset;
}

static int queue(struct nk_input *in, const struct nk_stdin_piece *piece, size_t known,
                 struct nk_err *err)
{
    nk_buf_add(&in->pending, (const uint8_t *)piece->data + known, piece->len - known);
    if (!in->pending.failed)
        return 0;
    in->pending.failed = false;
    return nk_fail(err, NK_OVERLOADED, "no memory for standard input");
}

int nk_stdin_write(struct nk_process *p, const struct nk_stdin_piece *piece, struct nk_err *err)
{
    uint64_t offset = piece->offset == NK_STDIN_NEXT ? p->input_end : piece->offset;
    struct nk_input *in;
    size_t known;

    if (!nk_stdin_is_open(p) && p->input_end > 0 && repeats_the_end(p, piece))
        return 0;
    if (!nk_stdin_is_open(p))
        return nk_fail(err, NK_CONFLICT, "standard input of process %s is not open", p->id);
    in = &p->live->in;
    if (offset > p->input_end)
        return nk_fail(err, NK_CONFLICT, "offset %llu leaves a gap: %llu bytes are known",
                       (unsigned long long)offset, (unsigned long long)p->input_end);
    known = p->input_end - offset < piece->len ? (size_t)(p->input_end - offset) : piece->len;
    if (piece->len - known > nk_stdin_room(p))
        return nk_fail(err, NK_OVERLOADED, "the program does not read its standard input");
    if (piece->len > known && queue(in, piece, known, err) < 0)
        return -1;
    p->input_end += piece->len - known;
    in->close_after = piece->close;
    nk_input_push(in);
    return 0;
}

int nk_stdin_push(struct nk_process *p, struct nk_stdin_piece *piece, struct nk_err *err)
{
    for (;;) {
        size_t room = nk_stdin_room(p);
        struct nk_stdin_piece part = *piece;

        if (room == 0 && piece->len > 0 && nk_stdin_is_open(p))
            return 0;
        part.len = piece->len < room ? piece->len : room;
        part.close = piece->close && part.len == piece->len;
        if (nk_stdin_write(p, &part, err) < 0)
            return -1;
        if (part.len > 0)
            piece->data = (const uint8_t *)piece->data + part.len;
        piece->len -= part.len;
        if (piece->offset != NK_STDIN_NEXT)
            piece->offset += part.len;
        if (piece->len == 0)
            return 1;
    }
}
