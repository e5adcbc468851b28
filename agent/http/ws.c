#include "http/ws.h"

#include <string.h>

#include "base/utf8.h"

#define FIN 0x80u
#define RSV 0x70u
#define OPCODE 0x0fu
#define CONTROL 0x08u
#define MASKED 0x80u
#define LENGTH 0x7fu
#define LENGTH_16 126u
#define LENGTH_64 127u
#define HEAD_ROOM 10u              /* the longest head without a mask */
#define MESSAGE_KEEP (64u * 1024u) /* a larger buffer does not stay for the next message */

void nk_ws_init(struct nk_ws *ws, bool server, const struct nk_ws_limits *limits)
{
    static const struct nk_ws_limits usual = {NK_WS_MESSAGE_MAX, NK_WS_FRAGMENTS_MAX};

    memset(ws, 0, sizeof *ws);
    ws->limits = limits ? *limits : usual;
    ws->masked = server;
}

void nk_ws_fini(struct nk_ws *ws)
{
    nk_buf_fini(&ws->message);
}

/* XOR with the mask, eight bytes at a time. */
static void apply_mask(uint8_t *out, const uint8_t *in, size_t len, const uint8_t *mask,
                       unsigned phase)
{
    uint8_t turned[8];
    uint64_t wide, word;
    size_t i = 0;

    for (unsigned k = 0; k < sizeof turned; k++)
        turned[k] = mask[(phase + k) % NK_WS_MASK_SIZE];
    memcpy(&wide, turned, sizeof wide);
    for (; len - i >= sizeof word; i += sizeof word) {
        memcpy(&word, in + i, sizeof word);
        word ^= wide;
        memcpy(out + i, &word, sizeof word);
    }
    for (; i < len; i++)
        out[i] = in[i] ^ turned[i % sizeof turned];
}

static enum nk_ws_kind broken(struct nk_ws *ws, unsigned code, struct nk_ws_item *out)
{
    ws->over = true;
    nk_buf_fini(&ws->message);
    *out = (struct nk_ws_item){.kind = NK_WS_BROKEN, .code = code};
    return NK_WS_BROKEN;
}

/* 0, or the code to close with. */
static unsigned check_start(const struct nk_ws *ws)
{
    uint8_t opcode = ws->head[0] & OPCODE;
    uint8_t length = ws->head[1] & LENGTH;

    if (ws->head[0] & RSV || !(ws->head[1] & MASKED) == ws->masked)
        return NK_WS_PROTOCOL;
    if (opcode & CONTROL) {
        bool known = opcode == NK_WS_CLOSE || opcode == NK_WS_PING || opcode == NK_WS_PONG;

        return known && ws->head[0] & FIN && length <= NK_WS_CONTROL_MAX ? 0 : NK_WS_PROTOCOL;
    }
    if (opcode > NK_WS_BINARY || (opcode == 0) == (ws->kind == NK_WS_MORE))
        return NK_WS_PROTOCOL;
    return 0;
}

static uint8_t head_size(const struct nk_ws *ws)
{
    uint8_t length = ws->head[1] & LENGTH;
    uint8_t size = length == LENGTH_64 ? 10 : length == LENGTH_16 ? 4 : 2;

    return ws->masked ? size + NK_WS_MASK_SIZE : size;
}

/* The length, which must be spelled in its shortest form. 0, or the code to close with. */
static unsigned read_length(struct nk_ws *ws)
{
    uint8_t length = ws->head[1] & LENGTH;
    unsigned bytes = length == LENGTH_64 ? 8 : length == LENGTH_16 ? 2 : 0;
    uint64_t least = length == LENGTH_64 ? 0x10000 : LENGTH_16;
    uint64_t n = 0;

    for (unsigned i = 0; i < bytes; i++)
        n = n << 8 | ws->head[2 + i];
    if (bytes > 0 && (n < least || n >> 63))
        return NK_WS_PROTOCOL;
    ws->left = bytes > 0 ? n : length;
    return 0;
}

static unsigned begin_frame(struct nk_ws *ws)
{
    unsigned code = read_length(ws);

    if (code)
        return code;
    ws->opcode = ws->head[0] & OPCODE;
    ws->fin = ws->head[0] & FIN;
    ws->mask_at = 0;
    ws->control_len = 0;
    if (ws->opcode & CONTROL)
        return 0;
    if (ws->opcode != 0)
        ws->kind = (enum nk_ws_kind)ws->opcode;
    if (ws->left > ws->limits.message_max ||
        nk_buf_left(&ws->message) + ws->left > ws->limits.message_max ||
        ++ws->fragments > ws->limits.fragments_max)
        return NK_WS_TOO_LARGE;
    return 0;
}

/* Takes bytes of the head; *out_code: what is wrong with it. True: it is complete. */
static bool read_head(struct nk_ws *ws, const uint8_t **at, size_t *left, unsigned *out_code)
{
    unsigned length_end;

    *out_code = 0;
    while (*left > 0) {
        ws->head[ws->head_len++] = *(*at)++;
        (*left)--;
        if (ws->head_len == 1)
            continue;
        if (ws->head_len == 2) {
            *out_code = check_start(ws);
            ws->head_need = head_size(ws);
        }
        length_end = ws->head_need - (ws->masked ? NK_WS_MASK_SIZE : 0);
        if (*out_code == 0 && ws->head_len == length_end)
            *out_code = begin_frame(ws);
        if (*out_code || ws->head_len == ws->head_need)
            return true;
    }
    return false;
}

static const uint8_t *mask_of(const struct nk_ws *ws)
{
    static const uint8_t none[NK_WS_MASK_SIZE];

    return ws->masked ? ws->head + ws->head_need - NK_WS_MASK_SIZE : none;
}

/* Whether the text so far can still become UTF-8, or is it where it ends. */
static bool check_text(struct nk_ws *ws, bool end)
{
    const uint8_t *data = nk_buf_front(&ws->message);
    size_t len = nk_buf_left(&ws->message);
    size_t rest;

    if (len == 0)
        return true;
    ws->checked += nk_utf8_valid_prefix(data + ws->checked, len - ws->checked);
    rest = len - ws->checked;
    return rest == 0 || (!end && nk_utf8_partial_tail(data + ws->checked, rest) == rest);
}

/* 0, or the code to close with. */
static unsigned read_payload(struct nk_ws *ws, const uint8_t **at, size_t *left)
{
    size_t n = *left < ws->left ? *left : (size_t)ws->left;
    uint8_t *room = ws->control + ws->control_len;

    if (n == 0)
        return 0;
    if (!(ws->opcode & CONTROL))
        room = nk_buf_reserve(&ws->message, n);
    if (!room)
        return NK_WS_INTERNAL;
    apply_mask(room, *at, n, mask_of(ws), ws->mask_at);
    if (ws->opcode & CONTROL)
        ws->control_len += (uint8_t)n;
    else
        nk_buf_commit(&ws->message, n);
    ws->mask_at = (unsigned)((ws->mask_at + n) % NK_WS_MASK_SIZE);
    ws->left -= n;
    *at += n;
    *left -= n;
    if (!(ws->opcode & CONTROL) && ws->kind == NK_WS_TEXT && !check_text(ws, false))
        return NK_WS_BAD_DATA;
    return 0;
}

static enum nk_ws_kind end_close(struct nk_ws *ws, struct nk_ws_item *out)
{
    unsigned code = (unsigned)ws->control[0] << 8 | ws->control[1];

    if (ws->control_len == 0) {
        code = NK_WS_NO_CODE;
    } else if (ws->control_len == 1 || !nk_ws_code_valid(code)) {
        return broken(ws, NK_WS_PROTOCOL, out);
    } else {
        out->data = ws->control + 2;
        out->len = ws->control_len - 2u;
    }
    if (!nk_utf8_valid(out->data, out->len))
        return broken(ws, NK_WS_BAD_DATA, out);
    ws->over = true;
    out->code = code;
    return NK_WS_CLOSE;
}

/* What the frame that is complete now has to tell; NK_WS_MORE: nothing by itself. */
static enum nk_ws_kind end_frame(struct nk_ws *ws, struct nk_ws_item *out)
{
    ws->head_len = 0;
    ws->head_need = 0;
    if (ws->opcode & CONTROL) {
        out->kind = (enum nk_ws_kind)ws->opcode;
        if (ws->opcode == NK_WS_CLOSE)
            return end_close(ws, out);
        out->data = ws->control;
        out->len = ws->control_len;
        return out->kind;
    }
    if (!ws->fin)
        return NK_WS_MORE;
    if (ws->kind == NK_WS_TEXT && !check_text(ws, true))
        return broken(ws, NK_WS_BAD_DATA, out);
    out->kind = ws->kind;
    out->len = nk_buf_left(&ws->message);
    out->data = out->len > 0 ? nk_buf_front(&ws->message) : (const uint8_t *)"";
    ws->kind = NK_WS_MORE;
    ws->given = true;
    return out->kind;
}

static void forget_message(struct nk_ws *ws)
{
    ws->given = false;
    ws->fragments = 0;
    ws->checked = 0;
    if (ws->message.cap > MESSAGE_KEEP)
        nk_buf_fini(&ws->message);
    else
        nk_buf_consume(&ws->message, nk_buf_left(&ws->message));
}

enum nk_ws_kind nk_ws_read(struct nk_ws *ws, const uint8_t **at, size_t *left,
                           struct nk_ws_item *out)
{
    enum nk_ws_kind kind = NK_WS_MORE;
    unsigned code = 0;

    *out = (struct nk_ws_item){.kind = NK_WS_MORE, .data = (const uint8_t *)""};
    if (ws->given)
        forget_message(ws);
    if (ws->over) {
        *at = *left > 0 ? *at + *left : *at;
        *left = 0;
        return NK_WS_MORE;
    }
    while (kind == NK_WS_MORE) {
        bool headed = ws->head_need > 0 && ws->head_len == ws->head_need;

        if (!headed && !read_head(ws, at, left, &code))
            return NK_WS_MORE;
        if (code == 0)
            code = read_payload(ws, at, left);
        if (code)
            return broken(ws, code, out);
        if (ws->left > 0)
            return NK_WS_MORE;
        kind = end_frame(ws, out);
    }
    return kind;
}

static size_t write_head(uint8_t head[HEAD_ROOM], enum nk_ws_kind kind, size_t len, bool masked)
{
    unsigned bytes = len > UINT16_MAX ? 8 : len >= LENGTH_16 ? 2 : 0;

    head[0] = (uint8_t)(FIN | (unsigned)kind);
    head[1] = (uint8_t)(bytes == 8 ? LENGTH_64 : bytes == 2 ? LENGTH_16 : len);
    if (masked)
        head[1] |= MASKED;
    for (unsigned i = 0; i < bytes; i++)
        head[2 + i] = (uint8_t)((uint64_t)len >> (8 * (bytes - 1 - i)));
    return 2 + bytes;
}

void nk_ws_add(struct nk_buf *out, enum nk_ws_kind kind, const void *data, size_t len,
               const uint8_t *mask)
{
    uint8_t head[HEAD_ROOM];
    size_t size = write_head(head, kind, len, mask != NULL);
    uint8_t *room = nk_buf_reserve(out, size + NK_WS_MASK_SIZE + len);

    if (!room)
        return;
    nk_buf_add(out, head, size);
    if (!mask) {
        nk_buf_add(out, data, len);
        return;
    }
    nk_buf_add(out, mask, NK_WS_MASK_SIZE);
    apply_mask(nk_buf_reserve(out, len), data, len, mask, 0);
    nk_buf_commit(out, len);
}

/* Not in the middle of a character. */
static size_t reason_len(const char *reason)
{
    size_t len = strlen(reason);

    if (len > NK_WS_CONTROL_MAX - 2)
        len = NK_WS_CONTROL_MAX - 2;
    return nk_utf8_valid_prefix(reason, len);
}

void nk_ws_add_close(struct nk_buf *out, unsigned code, const char *reason, const uint8_t *mask)
{
    uint8_t payload[NK_WS_CONTROL_MAX] = {(uint8_t)(code >> 8), (uint8_t)code};
    size_t len = reason ? reason_len(reason) : 0;

    if (len > 0)
        memcpy(payload + 2, reason, len);
    nk_ws_add(out, NK_WS_CLOSE, payload, code == NK_WS_NO_CODE ? 0 : 2 + len, mask);
}

size_t nk_ws_begin(struct nk_buf *out)
{
    static const uint8_t room[HEAD_ROOM];

    nk_buf_add(out, room, sizeof room);
    return nk_buf_left(out);
}

void nk_ws_end(struct nk_buf *out, size_t at, enum nk_ws_kind kind)
{
    uint8_t head[HEAD_ROOM];
    uint8_t *payload;
    size_t len, size;

    if (out->failed)
        return;
    len = nk_buf_left(out) - at;
    size = write_head(head, kind, len, false);
    payload = out->data + out->off + at;
    memcpy(payload - HEAD_ROOM, head, size);
    memmove(payload - HEAD_ROOM + size, payload, len);
    out->len -= HEAD_ROOM - size;
}

bool nk_ws_code_valid(unsigned code)
{
    if (code >= 3000)
        return code < 5000;
    return code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006;
}
