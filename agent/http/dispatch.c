#include "http/dispatch.h"

#include <string.h>
#include <strings.h>

#include "http/body.h"
#include "http/conn.h"
#include "http/inside.h"
#include "http/ws_accept.h"

static const struct nk_http_hooks *hooks_of(const struct nk_req *req)
{
    return &req->conn->server->cfg.hooks;
}

static void run_handler(struct nk_req *req)
{
    struct nk_err err = {0};

    req->handled = true;
    if (req->match.route->handler(req, &err) < 0)
        nk_req_fail(req, &err);
}

/* Over conns_max there is room for the question whether we live, and for nothing else. */
static int check_reserved(const struct nk_req *req, struct nk_err *err)
{
    const char *path = req->head->path;

    if (!req->conn->reserved || strcmp(path, "/healthz") == 0 || strcmp(path, "/readyz") == 0)
        return 0;
    return nk_fail(err, NK_OVERLOADED, "too many connections");
}

static int decode_params(struct nk_req *req, struct nk_err *err)
{
    for (size_t i = 0; i < req->match.param_count; i++) {
        size_t ignored = 0;

        req->params[i] = nk_query_decode(&req->arena, req->match.params[i].text,
                                         req->match.params[i].len, false, &ignored, err);
        if (!req->params[i])
            return -1;
    }
    return 0;
}

/* The gate may look at parameters, so they are read before it; what is wrong with them is said
 * after it. */
static int find_row(struct nk_req *req, struct nk_err *out_query_err, int *out_query,
                    struct nk_err *err)
{
    const struct nk_server_config *cfg = &req->conn->server->cfg;
    const struct nk_head *head = req->head;
    int found =
        nk_router_find(cfg->routes, cfg->route_count, head->method, head->path, &req->match, err);

    if (found < 0 || !req->match.route->opaque)
        *out_query =
            nk_query_parse(&req->arena, head->query, head->query_len, &req->query, out_query_err);
    if (found == 0 && decode_params(req, out_query_err) < 0) {
        req->match.param_count = 0;
        *out_query = -1;
    }
    return found;
}

static const char *expectation(const struct nk_req *req)
{
    return req->head->http10 ? NULL : nk_head_field(req->head, "expect", 0);
}

static int check_expectation(const struct nk_req *req, struct nk_err *err)
{
    const char *expect = expectation(req);

    if (!expect || strcasecmp(expect, "100-continue") == 0)
        return 0;
    return nk_fail(err, NK_EXPECTATION_FAILED, "only 100-continue can be expected, not %.100s",
                   expect);
}

/* `ask`: the gate has yet to judge. */
static int judge(struct nk_req *req, bool ask, struct nk_err *err)
{
    struct nk_err row_err = {0};
    struct nk_err query_err = {0};
    int query = 0;
    int found, gate;

    if (check_reserved(req, err) < 0)
        return -1;
    found = find_row(req, &query_err, &query, &row_err);
    req->started = true;
    gate = ask ? hooks_of(req)->gate(req, err) : 0;
    req->held = gate == NK_GATE_LATER;
    if (gate != 0 || req->replied)
        return gate;
    if (found < 0 || query < 0) {
        *err = found < 0 ? row_err : query_err;
        return -1;
    }
    if ((!req->match.route->opaque && nk_query_check(&req->query, req->match.route, err) < 0) ||
        (req->match.route->websocket && nk_ws_accept_check(req->head, err) < 0) ||
        check_expectation(req, err) < 0)
        return -1;
    return nk_body_check(req, err);
}

/* Only now is the body wanted; where some of it is here already, nobody waits for leave. A handler
 * that paused it may still refuse it. */
void nk_dispatch_continue(struct nk_req *req)
{
    static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";

    if (!req->expects || req->replied || req->paused || req->held)
        return;
    req->expects = false;
    if (req->conn->in.len == 0)
        nk_buf_add(&req->out.head, line, sizeof line - 1);
}

static void go_on(struct nk_req *req, int judged, const struct nk_err *err)
{
    if (judged < 0) {
        nk_req_fail(req, err);
        return;
    }
    if (!req->replied && !req->collecting && !req->held)
        run_handler(req);
    nk_dispatch_continue(req);
}

void nk_dispatch_head(struct nk_req *req)
{
    struct nk_err err = {0};

    req->headed = true;
    req->expects = req->head->has_body && expectation(req);
    req->body_started_ms = uv_now(req->conn->server->loop);
    req->conn->server->stats.requests++;
    go_on(req, judge(req, true, &err), &err);
}

void nk_dispatch_admit(struct nk_req *req, const struct nk_err *refused)
{
    struct nk_err err = refused ? *refused : (struct nk_err){0};
    uint64_t now = uv_now(req->conn->server->loop);

    if (!req->held)
        return;
    req->held = false;
    req->body_started_ms = now;
    go_on(req, refused ? -1 : judge(req, false, &err), &err);
    nk_conn_touch(req->conn);
}

static int take_data(struct nk_req *req, const uint8_t *data, size_t len, struct nk_err *err)
{
    if (req->body_max > 0 && req->body_seen > req->body_max && (req->collecting || req->sink))
        return nk_fail(err, NK_TOO_LARGE, "the body is larger than %llu bytes",
                       (unsigned long long)req->body_max);
    if (req->sink)
        return req->sink->on_data(req, data, len, err);
    if (!req->collecting)
        return 0;
    nk_buf_add(&req->body, data, len);
    return req->body.failed ? nk_fail(err, NK_OVERLOADED, "out of memory") : 0;
}

void nk_dispatch_data(struct nk_req *req, const uint8_t *data, size_t len)
{
    struct nk_err err = {0};

    req->body_seen += len;
    if (take_data(req, data, len, &err) < 0) {
        req->sink = NULL;
        nk_req_fail(req, &err);
    }
}

void nk_dispatch_end(struct nk_req *req)
{
    struct nk_err err = {0};

    req->body_over = true;
    if (req->collecting) {
        if (nk_body_parse(req, &err) < 0)
            nk_req_fail(req, &err);
        else
            run_handler(req);
        return;
    }
    if (req->sink && req->sink->on_end(req, &err) < 0)
        nk_req_fail(req, &err);
}
