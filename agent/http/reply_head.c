#include "http/reply_head.h"

#include <string.h>

#include "base/attr.h"
#include "http/inside.h"

#define HEAD_ROOM 512

struct reason {
    int status;
    const char *text;
};

static const struct reason reasons[] = {
    {101, "Switching Protocols"},
    {102, "Processing"},
    {103, "Early Hints"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {426, "Upgrade Required"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < NK_COUNT(reasons); i++) {
        if (reasons[i].status == status)
            return reasons[i].text;
    }
    return "Status";
}

static void add_line(struct nk_buf *out, const char *name, const char *value)
{
    nk_buf_add_str(out, name);
    nk_buf_add(out, ": ", 2);
    nk_buf_add_str(out, value);
    nk_buf_add(out, "\r\n", 2);
}

static bool status_has_body(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

bool nk_reply_head_has_body(const struct nk_req *req)
{
    return status_has_body(req->status) && !(req->headed && req->head->method == NK_HEAD);
}

/* What is still to come of the body can be read and dropped without keeping anybody waiting. */
static bool can_discard(const struct nk_req *req)
{
    if (req->body_over || !req->head->has_body)
        return true;
    if (req->expects || req->head->chunked)
        return false;
    return (uint64_t)req->head->content_length - req->body_seen <= NK_DISCARD_MAX;
}

static bool keeps_connection(const struct nk_req *req, int64_t length)
{
    const struct nk_conn *c = req->conn;

    if (req->close_after || req->fatal || !req->headed || c->reserved || c->server->draining)
        return false;
    if (length < 0 && req->head->http10 && nk_reply_head_has_body(req))
        return false;
    return req->head->keep_alive && can_discard(req);
}

static void add_framing(struct nk_req *req, struct nk_buf *out, int64_t length)
{
    if (!status_has_body(req->status))
        return;
    if (length >= 0) {
        nk_buf_add_str(out, "Content-Length: ");
        nk_buf_add_u64(out, (uint64_t)length);
        nk_buf_add(out, "\r\n", 2);
    } else if (!req->head->http10) {
        add_line(out, "Transfer-Encoding", "chunked");
    }
}

static void add_connection(struct nk_req *req, struct nk_buf *out)
{
    if (req->status == 101) {
        nk_buf_add_str(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
        return;
    }
    if (req->close_after)
        add_line(out, "Connection", "close");
    else if (req->head->http10)
        add_line(out, "Connection", "keep-alive");
}

static void add_status(struct nk_buf *out, int status)
{
    nk_buf_add(out, "HTTP/1.1 ", 9);
    nk_buf_add_u64(out, (uint64_t)status);
    nk_buf_add_char(out, ' ');
    nk_buf_add_str(out, reason_of(status));
    nk_buf_add(out, "\r\n", 2);
}

void nk_reply_head_interim(struct nk_buf *out, int status, const struct nk_buf *lines)
{
    add_status(out, status);
    nk_buf_add(out, nk_buf_front(lines), nk_buf_left(lines));
    nk_buf_add(out, "\r\n", 2);
}

void nk_reply_head_write(struct nk_req *req, const char *type, int64_t length, size_t body_room)
{
    struct nk_buf *out = &req->out.head;

    if (!keeps_connection(req, length))
        req->close_after = true;
    (void)nk_buf_reserve(out, HEAD_ROOM + nk_buf_left(&req->extra) + body_room);
    add_status(out, req->status);
    add_line(out, "X-Request-Id", nk_req_id(req));
    add_line(out, "X-Nook-Instance", req->conn->server->cfg.instance);
    if (type)
        add_line(out, "Content-Type", type);
    add_framing(req, out, length);
    add_connection(req, out);
    if (nk_buf_left(&req->extra) > 0)
        nk_buf_add(out, nk_buf_front(&req->extra), nk_buf_left(&req->extra));
    out->failed |= req->extra.failed;
    nk_buf_fini(&req->extra);
    nk_buf_add(out, "\r\n", 2);
}
