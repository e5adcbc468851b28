#include "http/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/attr.h"
#include "http/conn.h"
#include "http/inside.h"
#include "http/proxy_head.h"
#include "http/proxy_private.h"
#include "http/ws_accept.h"

uint64_t nk_proxy_now(const struct nk_proxy *p)
{
    return uv_now(p->timer.loop);
}
static void on_timer(uv_timer_t *timer);

static uint64_t next_deadline(const struct nk_proxy *p)
{
    if (p->leaving && p->open)
        return p->moved_ms + NK_PROXY_LEAVE_MS;
    return p->open && !p->answered ? p->moved_ms + p->answer_ms : UINT64_MAX;
}

void nk_proxy_schedule(struct nk_proxy *p)
{
    uint64_t now = nk_proxy_now(p);
    uint64_t due = next_deadline(p);

    if (due == UINT64_MAX)
        (void)uv_timer_stop(&p->timer);
    else
        (void)uv_timer_start(&p->timer, on_timer, due > now ? due - now : 0, 0);
}

static void fail(struct nk_proxy *p, const struct nk_err *err)
{
    nk_upstream_close(&p->upstream);
    p->open = false;
    nk_buf_fini(&p->out);
    nk_req_fail(p->req, err);
}

/* The server is silent, or nobody is there any more to hear it. */
static void on_timer(uv_timer_t *timer)
{
    struct nk_proxy *p = timer->data;
    struct nk_err err;

    if (nk_proxy_now(p) < next_deadline(p)) {
        nk_proxy_schedule(p);
    } else if (p->leaving) {
        /* What waits to be sent will tell by itself whether somebody is there. */
        p->moved_ms = nk_proxy_now(p);
        if (!p->req->out.blocked)
            nk_conn_cut(p->req->conn);
        else
            nk_proxy_schedule(p);
    } else {
        nk_fail(&err, NK_GATEWAY_TIMEOUT, "the server did not answer in time");
        fail(p, &err);
    }
}

int nk_proxy_no_memory(struct nk_err *err)
{
    return nk_fail(err, NK_OVERLOADED, "out of memory");
}

static void on_ready(void *ctx, bool readable, bool writable)
{
    struct nk_proxy *p = ctx;
    struct nk_err err;

    if (writable)
        nk_proxy_body_flush(p);
    if (!readable)
        return;
    if (p->answered)
        nk_reply_wake(p->req);
    else if (nk_proxy_answer_read(p, &err) < 0)
        fail(p, &err);
}

static void on_opened(void *ctx)
{
    struct nk_proxy *p = ctx;

    p->open = true;
    p->moved_ms = nk_proxy_now(p);
    nk_proxy_body_flush(p);
    nk_proxy_schedule(p);
    on_ready(p, true, false);
}

static void on_failed(void *ctx, const struct nk_err *err)
{
    fail(ctx, err);
}

static const struct nk_upstream_events upstream_events = {
    .opened = on_opened, .failed = on_failed, .ready = on_ready};

/* On a Unix socket a hang-up tells who has left; over TCP a shut side is all that can be seen, and one
 * who waits for an answer still gets it when it comes soon, or goes on coming. */
static void on_half_close(struct nk_req *req, void *ctx)
{
    struct nk_proxy *p = ctx;

    if (nk_req_is_local(req) && !p->tunnel)
        return;
    p->leaving = true;
    p->moved_ms = nk_proxy_now(p);
    nk_proxy_schedule(p);
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct nk_proxy *p = ctx;

    (void)req;
    (void)gone;
    p->req = NULL;
    nk_upstream_close(&p->upstream);
    nk_response_fini(&p->answer);
    nk_buf_fini(&p->in);
    nk_buf_fini(&p->out);
    uv_close((uv_handle_t *)&p->timer, on_timer_closed);
}

/* "" where the client has no address. */
static void peer_of(const struct nk_req *req, char out[INET6_ADDRSTRLEN])
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } a;
    socklen_t len = sizeof a;

    out[0] = '\0';
    if (getpeername(req->conn->fd, &a.any, &len) < 0)
        return;
    if (a.any.sa_family == AF_INET)
        (void)inet_ntop(AF_INET, &a.in.sin_addr, out, INET6_ADDRSTRLEN);
    else if (a.any.sa_family == AF_INET6)
        (void)inet_ntop(AF_INET6, &a.in6.sin6_addr, out, INET6_ADDRSTRLEN);
}

static void write_request(struct nk_proxy *p, const struct nk_proxy_config *cfg)
{
    char peer[INET6_ADDRSTRLEN];
    const struct nk_proxy_head head = {
        .head = p->req->head,
        .method = nk_router_method_name(nk_req_method(p->req)),
        .target = cfg->target,
        .host = nk_req_header(p->req, "Host"),
        .peer = peer,
        .port = cfg->port,
        .upgrade = p->upgrade,
        .keeps_auth = cfg->keeps_auth,
    };

    peer_of(p->req, peer);
    nk_proxy_head_request(&p->out, &head);
}

static int begin(struct nk_proxy *p, const struct nk_proxy_config *cfg)
{
    const struct nk_upstream_config up = {
        .loop = cfg->loop,
        .jobs = cfg->jobs,
        .port = cfg->port,
        .connect_ms = cfg->connect_ms ? cfg->connect_ms : NK_PROXY_CONNECT_MS,
        .as = cfg->as,
        .share = cfg->share,
        .may = cfg->may,
        .who = cfg->who,
        .events = &upstream_events,
        .ctx = p,
    };

    write_request(p, cfg);
    return p->out.failed ? -ENOMEM : nk_upstream_open(&up, &p->upstream);
}

int nk_proxy_open(struct nk_req *req, const struct nk_proxy_config *cfg, struct nk_err *err)
{
    bool upgrade = nk_ws_accept_asked(req->head);
    struct nk_proxy *p;

    if (upgrade && nk_ws_accept_check(req->head, err) < 0)
        return -1;
    p = calloc(1, sizeof *p);
    if (!p)
        return nk_proxy_no_memory(err);
    p->req = req;
    p->upgrade = upgrade;
    p->source.pull = nk_proxy_answer_pull;
    p->answer.to_head = req->head->method == NK_HEAD;
    p->answer.with_interim = true;
    p->answer_ms = cfg->answer_ms ? cfg->answer_ms : NK_PROXY_ANSWER_MS;
    if (begin(p, cfg) < 0) {
        nk_buf_fini(&p->out);
        free(p);
        return nk_proxy_no_memory(err);
    }
    (void)uv_timer_init(cfg->loop, &p->timer);
    p->timer.data = p;
    nk_req_set_ctx(req, p);
    nk_req_on_close(req, on_close, p);
    nk_req_on_half_close(req, on_half_close, p);
    nk_req_set_body_sink(req, &nk_proxy_body_sink);
    nk_req_pause_body(req, true);
    return 0;
}
