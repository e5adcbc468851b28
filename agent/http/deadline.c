#include "http/deadline.h"

/* A slot beyond the cap is for one quick question. */
#define RESERVED_MS 2000u

static uint64_t after(uint64_t from, uint64_t limit_ms)
{
    return limit_ms > 0 ? from + limit_ms : UINT64_MAX;
}

static uint64_t wait_for_request(const struct nk_conn *c, uint64_t limit_ms)
{
    if (c->reserved && (limit_ms == 0 || limit_ms > RESERVED_MS))
        limit_ms = RESERVED_MS;
    return after(c->since_ms, limit_ms);
}

/* Every `rate` bytes buy a second, on top of the grace. */
static uint64_t wait_for_body(const struct nk_req *req, const struct nk_http_limits *limits)
{
    uint64_t earned = limits->body_min_rate ? req->body_seen * 1000 / limits->body_min_rate : 0;

    if (limits->body_grace_ms == 0 || limits->body_min_rate == 0)
        return UINT64_MAX;
    return req->body_started_ms + limits->body_grace_ms + earned;
}

static enum nk_wait wait_of_request(const struct nk_req *req, const struct nk_http_limits *limits,
                                    uint64_t *out_ms)
{
    uint64_t body = UINT64_MAX;
    uint64_t write = UINT64_MAX;

    if (!req->headed && !req->replied) {
        *out_ms = wait_for_request(req->conn, limits->header_ms);
        return NK_WAIT_HEAD;
    }
    if (!req->body_over && !req->paused && !req->held && !req->upgrade)
        body = wait_for_body(req, limits);
    if (req->out.blocked)
        write = after(req->out.progress_ms,
                      req->conn->local ? limits->local_stall_ms : limits->write_stall_ms);
    *out_ms = body < write ? body : write;
    if (*out_ms == UINT64_MAX)
        return NK_WAIT_NOTHING;
    return body < write ? NK_WAIT_BODY : NK_WAIT_WRITE;
}

enum nk_wait nk_deadline_of(const struct nk_conn *c, uint64_t *out_ms)
{
    const struct nk_http_limits *limits = &c->server->cfg.limits;

    if (c->lingering) {
        *out_ms = c->since_ms + NK_LINGER_MS;
        return NK_WAIT_LINGER;
    }
    if (!c->req) {
        *out_ms = wait_for_request(c, limits->idle_ms);
        return NK_WAIT_IDLE;
    }
    return wait_of_request(c->req, limits, out_ms);
}

void nk_deadline_arm(struct nk_conn *c, uv_timer_cb fired)
{
    uint64_t now = uv_now(c->server->loop);
    uint64_t deadline = UINT64_MAX;

    (void)nk_deadline_of(c, &deadline);
    if (deadline == UINT64_MAX || (c->timer_ms > 0 && c->timer_ms <= deadline))
        return;
    c->timer_ms = deadline;
    (void)uv_timer_start(&c->timer, fired, deadline > now ? deadline - now : 0, 0);
}
