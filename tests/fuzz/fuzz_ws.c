/* rooms: http base */
/* Frames of either side, cut as the input says: read whole and in pieces they tell the same, and a
 * message never passes its limits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "http/ws.h"

static const struct nk_ws_limits limits = {.message_max = 4096, .fragments_max = 8};

static void check(const struct nk_ws_item *item)
{
    if ((item->kind == NK_WS_TEXT || item->kind == NK_WS_CLOSE) &&
        !nk_utf8_valid(item->data, item->len))
        abort();
    if (item->len > limits.message_max)
        abort();
    if (item->kind == NK_WS_CLOSE && item->code && !nk_ws_code_valid(item->code))
        abort();
    if (item->kind == NK_WS_BROKEN && !nk_ws_code_valid(item->code))
        abort();
}

static void note(struct nk_buf *tale, const struct nk_ws_item *item)
{
    uint8_t head[6] = {(uint8_t)item->kind,       (uint8_t)(item->code >> 8), (uint8_t)item->code,
                       (uint8_t)(item->len >> 8), (uint8_t)item->len,         0};

    check(item);
    nk_buf_add(tale, head, sizeof head);
    nk_buf_add(tale, item->data, item->len);
}

static void read_all(bool server, const uint8_t *data, size_t len, size_t step, struct nk_buf *tale)
{
    struct nk_ws ws;

    nk_ws_init(&ws, server, &limits);
    for (size_t at = 0; at < len; at += step) {
        const uint8_t *p = data + at;
        size_t left = len - at < step ? len - at : step;
        struct nk_ws_item item;

        while (nk_ws_read(&ws, &p, &left, &item) != NK_WS_MORE)
            note(tale, &item);
        if (left != 0)
            abort();
    }
    nk_ws_fini(&ws);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nk_buf whole = {0}, pieces = {0};
    bool server;
    size_t step;

    if (size < 2)
        return 0;
    server = data[0] & 1;
    step = data[1] ? data[1] : 1;
    read_all(server, data + 2, size - 2, size, &whole);
    read_all(server, data + 2, size - 2, step, &pieces);
    if (nk_buf_left(&whole) != nk_buf_left(&pieces) ||
        (nk_buf_left(&whole) > 0 &&
         memcmp(nk_buf_front(&whole), nk_buf_front(&pieces), nk_buf_left(&whole)) != 0))
        abort();
    nk_buf_fini(&whole);
    nk_buf_fini(&pieces);
    return 0;
}
