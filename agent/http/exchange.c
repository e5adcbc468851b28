#include "http/exchange.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "http/sender.h"

int nk_exchange_begin(struct nk_conn *c)
{
    const struct nk_http_limits *limits = &c->server->cfg.limits;
    const struct nk_parser_limits parser_limits = {
        .header_max = limits->header_max,
        .header_lines_max = limits->header_lines_max,
        .url_max = limits->url_max,
        .chunk_line_max = limits->chunk_line_max,
    };
    struct nk_req *req = calloc(1, sizeof *req);

    if (!req)
        return -ENOMEM;
    req->parser = nk_parser_new(&req->arena, &parser_limits);
    if (!req->parser) {
        nk_arena_fini(&req->arena);
        free(req);
        return -ENOMEM;
    }
    req->head = nk_parser_head(req->parser);
    req->conn = c;
    req->out.left = -1;
    req->started_ms = nk_clock_mono_ms();
    nk_id_new(req->id_made);
    c->req = req;
    c->since_ms = uv_now(c->server->loop);
    c->server->stats.busy++;
    return 0;
}

void nk_exchange_finish(struct nk_req *req, bool gone)
{
    const struct nk_http_hooks *hooks = &req->conn->server->cfg.hooks;

    if (req->finished)
        return;
    req->finished = true;
    if (req->close_fn)
        req->close_fn(req, req->close_ctx, gone);
    if (req->started || req->replied)
        hooks->finished(req, req->status, gone);
    /* What the handler lent is its own again. */
    req->sink = NULL;
    req->out.src = NULL;
    req->half_close_fn = NULL;
    req->paused = false;
}

void nk_exchange_end(struct nk_conn *c, bool gone)
{
    struct nk_req *req = c->req;

    nk_exchange_finish(req, gone);
    c->req = NULL;
    c->server->stats.busy--;
    nk_sender_fini(&req->out);
    nk_buf_fini(&req->extra);
    nk_buf_fini(&req->body);
    nk_json_free(req->json);
    nk_parser_free(req->parser);
    nk_arena_fini(&req->arena);
    free(req);
}

void nk_exchange_refuse(struct nk_req *req, const struct nk_err *err)
{
    req->fatal = true;
    req->body_over = true;
    req->close_after = true;
    nk_req_fail(req, err);
}
