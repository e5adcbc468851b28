#include "api/api.h"

#include "api/gate.h"
#include "api/problem.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/request.h"
#include "lifetime/lifetime.h"

/* A line costs as much as half of a small request, so what went well is for those who debug, and
 * so are probes, which come by the second and say nothing. */
static enum nk_log_level level_of(const struct nk_req *req, int status, bool gone)
{
    const struct nk_route *route = nk_req_route(req);
    bool probe = route && route->auth == NK_AUTH_NONE;

    return probe || (status < 400 && !gone) ? NK_LOG_DEBUG : NK_LOG_INFO;
}

/* What is worked on keeps the sandbox from idling, as long as it lasts. */
static int on_gate(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    const struct nk_route *route = nk_req_route(req);

    int gate = nk_gate_check(req, err);

    if (gate >= 0 && route && route->touches) {
        nk_req_set_counted(req);
        nk_lifetime_hold(api->lifetime);
    }
    return gate;
}

static void on_finished(struct nk_req *req, int status, bool gone)
{
    struct nk_api *api = nk_req_app(req);
    const struct nk_route *route = nk_req_route(req);
    enum nk_log_level level = level_of(req, status, gone);
    const struct nk_log_field fields[] = {
        {"request_id", nk_req_id(req), 0},
        {"operation", route ? route->operation : "none", 0},
        {"status", NULL, status},
        {"duration_ms", NULL, (int64_t)(nk_clock_mono_ms() - nk_req_started_ms(req))},
        {"gone", NULL, gone},
        {NULL, NULL, 0},
    };

    if (nk_req_is_counted(req) && api->lifetime)
        nk_lifetime_release(api->lifetime);
    if (status >= 100 && status < 600)
        api->answers[status / 100]++;
    if (nk_log_on(level))
        nk_log_write(level, "request", NULL, fields);
}

struct nk_http_hooks nk_api_hooks(struct nk_api *api)
{
    return (struct nk_http_hooks){
        .gate = on_gate,
        .problem = nk_problem_reply,
        .finished = on_finished,
        .app = api,
    };
}
