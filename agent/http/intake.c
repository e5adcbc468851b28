#include "http/intake.h"

#include "http/dispatch.h"
#include "http/exchange.h"

#define LEND_MIN (2 * NK_INPUT_SIZE) /* for less the way into a job and back is too long */

bool nk_intake_wants(const struct nk_conn *c)
{
    const struct nk_req *req = c->req;

    if (c->closed || c->eof || c->in.len > 0)
        return false;
    if (!req || c->lingering)
        return true;
    if (req->paused || req->held || req->fatal)
        return false;
    return req->upgrade || !req->body_over;
}

/* The client has ended in the middle of a request, or before it. */
static enum nk_intake end_early(struct nk_req *req)
{
    struct nk_err err;

    if (!req->headed && nk_parser_is_blank(req->parser))
        return NK_INTAKE_CLOSE;
    nk_fail(&err, NK_BAD_REQUEST, "the request ended early");
    nk_exchange_refuse(req, &err);
    return NK_INTAKE_MOVED;
}

static enum nk_intake parse(struct nk_conn *c)
{
    struct nk_req *req = c->req;
    struct nk_err err = {0};

    switch (nk_parser_step(req->parser, &c->in, &err)) {
    case NK_PARSE_MORE:
        return c->eof ? end_early(req) : NK_INTAKE_NONE;
    case NK_PARSE_HEAD:
        nk_dispatch_head(req);
        break;
    case NK_PARSE_BODY:
        nk_dispatch_data(req, c->in.body, c->in.body_len);
        break;
    case NK_PARSE_END:
        nk_dispatch_end(req);
        break;
    case NK_PARSE_FAIL:
        nk_exchange_refuse(req, &err);
        break;
    }
    return NK_INTAKE_MOVED;
}

/* After 101 the bytes are not ours to understand. */
static enum nk_intake pass_on(struct nk_conn *c)
{
    struct nk_req *req = c->req;
    size_t len = c->in.len;

    if (len == 0 && (!c->eof || req->half_told))
        return NK_INTAKE_NONE;
    req->half_told = len == 0;
    c->in.len = 0;
    req->upgrade->on_data(req, len > 0 ? c->in.data : NULL, len);
    return NK_INTAKE_MOVED;
}

static enum nk_intake begin(struct nk_conn *c)
{
    if (c->in.len == 0)
        return c->eof || c->server->draining ? NK_INTAKE_CLOSE : NK_INTAKE_NONE;
    return nk_exchange_begin(c) < 0 ? NK_INTAKE_CLOSE : NK_INTAKE_MOVED;
}

enum nk_intake nk_intake_step(struct nk_conn *c)
{
    const struct nk_req *req = c->req;

    if (!req)
        return begin(c);
    if (req->held && !req->replied)
        return NK_INTAKE_NONE;
    if (req->paused || req->finished)
        return req->finished && !req->body_over ? parse(c) : NK_INTAKE_NONE;
    if (req->upgrade)
        return pass_on(c);
    return req->body_over ? NK_INTAKE_NONE : parse(c);
}

static bool lend(struct nk_req *req, uint64_t spare)
{
    if (!req->sink->on_readable || !req->sink->on_readable(req, req->conn->fd, spare))
        return false;
    req->lent = true;
    nk_req_pause_body(req, true);
    return true;
}

static void took(struct nk_req *req, uint64_t n)
{
    req->body_seen += n;
    req->conn->server->stats.bytes_in += n;
    (void)nk_parser_skip(req->parser, n);
}

static bool give(struct nk_req *req, uint64_t spare)
{
    ssize_t n = req->sink->on_take ? req->sink->on_take(req, req->conn->fd, spare) : 0;

    if (n > 0)
        took(req, (uint64_t)n);
    return n != 0;
}

bool nk_intake_lend(struct nk_conn *c)
{
    struct nk_req *req = c->req;
    uint64_t spare;

    if (!req || !req->sink || req->replied || req->dry)
        return false;
    spare = nk_parser_skip(req->parser, 0);
    return spare >= LEND_MIN && (lend(req, spare) || give(req, spare));
}
