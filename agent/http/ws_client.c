#include "http/ws_client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/attr.h"
#include "base/base64.h"
#include "base/id.h"
#include "http/ws_accept.h"

#define KEY_LINE "Sec-WebSocket-Key: "

static int make_key(struct nk_ws_client *c)
{
    uint8_t random[16];
    struct nk_buf coded = {0};
    int rc = -ENOMEM;

    nk_id_random(random, sizeof random);
    nk_base64_encode(&coded, random, sizeof random);
    if (!coded.failed) {
        memcpy(c->key, nk_buf_front(&coded), NK_WS_KEY_SIZE);
        rc = 0;
    }
    nk_buf_fini(&coded);
    return rc;
}

int nk_ws_client_ask(struct nk_ws_client *c, struct nk_client *http, const char *path,
                     struct nk_err *err)
{
    char line[sizeof KEY_LINE + NK_WS_KEY_SIZE] = KEY_LINE;
    const char *const headers[] = {"Connection: Upgrade",
                                   "Upgrade: websocket",
                                   "Sec-WebSocket-Version: 13",
                                   "Sec-WebSocket-Protocol: nook.v1",
                                   line,
                                   NULL};
    const struct nk_client_request req = {.method = "GET", .path = path, .headers = headers};

    memset(c, 0, sizeof *c);
    c->http = http;
    nk_ws_init(&c->in, false, NULL);
    if (make_key(c) < 0)
        return nk_fail_sys(err, ENOMEM, "cannot build the request");
    memcpy(line + sizeof KEY_LINE - 1, c->key, sizeof c->key);
    return nk_client_send(http, &req, err);
}

int nk_ws_client_accept(struct nk_ws_client *c, int *out_status, struct nk_err *err)
{
    char expected[NK_WS_ACCEPT_ROOM];
    const char *accept;

    if (nk_client_read_head(c->http, out_status, err) < 0)
        return -1;
    if (*out_status != 101)
        return 0;
    accept = nk_client_header(c->http, "Sec-WebSocket-Accept");
    nk_ws_accept_key(c->key, expected);
    if (!accept || strcmp(accept, expected) != 0)
        return nk_fail(err, NK_BAD_GATEWAY, "the server does not speak WebSocket");
    return 0;
}

void nk_ws_client_fini(struct nk_ws_client *c)
{
    nk_ws_fini(&c->in);
    nk_buf_fini(&c->bytes);
    nk_buf_fini(&c->out);
}

static int check_queue(const struct nk_ws_client *c, struct nk_err *err)
{
    return c->out.failed ? nk_fail_sys(err, ENOMEM, "cannot keep a message") : 0;
}

int nk_ws_client_send(struct nk_ws_client *c, enum nk_ws_kind kind, const void *data, size_t len,
                      struct nk_err *err)
{
    uint8_t mask[NK_WS_MASK_SIZE];

    nk_id_random(mask, sizeof mask);
    nk_ws_add(&c->out, kind, data, len, mask);
    return check_queue(c, err);
}

int nk_ws_client_close(struct nk_ws_client *c, unsigned code, struct nk_err *err)
{
    uint8_t mask[NK_WS_MASK_SIZE];

    nk_id_random(mask, sizeof mask);
    nk_ws_add_close(&c->out, code, NULL, mask);
    return check_queue(c, err);
}

size_t nk_ws_client_queued(const struct nk_ws_client *c)
{
    return nk_buf_left(&c->out);
}

int nk_ws_client_flush(struct nk_ws_client *c, struct nk_err *err)
{
    while (nk_buf_left(&c->out) > 0) {
        ssize_t n = send(nk_client_fd(c->http), nk_buf_front(&c->out), nk_buf_left(&c->out),
                         MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        /* The server takes no more; what it has to say may still tell why. */
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
            nk_buf_fini(&c->out);
            return 0;
        }
        if (n < 0)
            return nk_fail_sys(err, errno, "cannot send to the server");
        nk_buf_consume(&c->out, (size_t)n);
    }
    return 0;
}

int nk_ws_client_read(struct nk_ws_client *c, struct nk_err *err)
{
    return nk_client_read_body(c->http, &c->bytes, &c->ended, err);
}

enum nk_ws_kind nk_ws_client_next(struct nk_ws_client *c, struct nk_ws_item *out)
{
    enum nk_ws_kind kind;

    do {
        const uint8_t *at = nk_buf_front(&c->bytes);
        size_t left = nk_buf_left(&c->bytes);
        size_t before = left;

        kind = nk_ws_read(&c->in, &at, &left, out);
        nk_buf_consume(&c->bytes, before - left);
        if (kind == NK_WS_PING && nk_ws_client_send(c, NK_WS_PONG, out->data, out->len, NULL) < 0) {
            *out = (struct nk_ws_item){.kind = NK_WS_BROKEN, .code = NK_WS_INTERNAL};
            return NK_WS_BROKEN;
        }
    } while (kind == NK_WS_PING || kind == NK_WS_PONG);
    return kind;
}
