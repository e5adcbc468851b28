#include "http/ws_accept.h"

#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/sha1.h"

static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

bool nk_ws_accept_asked(const struct nk_head *head)
{
    return head->method == NK_GET && !head->http10 && head->connection_upgrade &&
           nk_head_has_token(nk_head_field(head, "upgrade", 0), "websocket");
}

static bool is_key(const char *key)
{
    uint8_t bytes[NK_WS_KEY_SIZE / 4 * 3];
    size_t len = 0;

    return strlen(key) == NK_WS_KEY_SIZE &&
           nk_base64_decode(key, NK_WS_KEY_SIZE, bytes, &len) == 0 && len == 16;
}

int nk_ws_accept_check(const struct nk_head *head, struct nk_err *err)
{
    const char *key = nk_head_field(head, "sec-websocket-key", 0);
    const char *version = nk_head_field(head, "sec-websocket-version", 0);

    if (head->has_body)
        return nk_fail(err, NK_BAD_REQUEST, "an upgrade has no body");
    if (!nk_ws_accept_asked(head))
        return nk_fail(err, NK_UPGRADE_REQUIRED,
                       "this is a WebSocket: ask with Upgrade: websocket");
    if (!version || strcmp(version, "13") != 0 || nk_head_field(head, "sec-websocket-version", 1))
        return nk_fail(err, NK_UPGRADE_REQUIRED, "Sec-WebSocket-Version must be 13");
    if (!key || !is_key(key) || nk_head_field(head, "sec-websocket-key", 1))
        return nk_fail(err, NK_BAD_REQUEST, "Sec-WebSocket-Key must be 16 bytes in base64");
    return 0;
}

void nk_ws_accept_key(const char *key, char out[NK_WS_ACCEPT_ROOM])
{
    char text[NK_WS_KEY_SIZE + sizeof guid];
    uint8_t digest[NK_SHA1_SIZE];
    struct nk_buf coded = {0};

    memcpy(text, key, NK_WS_KEY_SIZE);
    memcpy(text + NK_WS_KEY_SIZE, guid, sizeof guid);
    nk_sha1(text, sizeof text - 1, digest);
    nk_base64_encode(&coded, digest, sizeof digest);
    /* Without memory it is empty, which the client refuses. */
    memset(out, 0, NK_WS_ACCEPT_ROOM);
    if (!coded.failed)
        memcpy(out, nk_buf_front(&coded), NK_WS_ACCEPT_ROOM - 1);
    nk_buf_fini(&coded);
}

static bool lists(const char *list, const char *protocol)
{
    size_t len = strlen(protocol);

    for (const char *at = list; *at; at += strcspn(at, ",")) {
        size_t n;

        at += strspn(at, ", \t");
        n = strcspn(at, ", \t");
        if (n == len && memcmp(at, protocol, len) == 0)
            return true;
    }
    return false;
}

bool nk_ws_accept_offers(const struct nk_head *head, const char *protocol)
{
    const char *list;

    for (unsigned i = 0; (list = nk_head_field(head, "sec-websocket-protocol", i)); i++) {
        if (lists(list, protocol))
            return true;
    }
    return false;
}
