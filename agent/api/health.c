#include "api/api.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/wire.h"
#include "base/clock.h"
#include "http/reply.h"
#include "http/request.h"

static void reply_ok(struct nk_req *req, const struct nk_api *api)
{
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};

    nk_json_out_open(&o, NULL, '{');
    nk_json_out_str(&o, "status", "ok");
    nk_json_out_str(&o, "version", NOOK_VERSION);
    nk_json_out_str(&o, "instance", api->instance);
    nk_json_out_u64(&o, "uptime_ms", nk_clock_mono_ms() - api->started_ms);
    nk_json_out_close(&o, '}');
    nk_wire_reply(req, 200, &body);
}

static void reply_starting(struct nk_req *req)
{
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};
    struct nk_err err;

    (void)nk_fail(&err, NK_STARTING, "the self-test is not over");
    nk_problem_headers(req, &err);
    nk_json_out_open(&o, NULL, '{');
    nk_json_out_open(&o, "error", '{');
    nk_problem_members(&o, &err);
    nk_json_out_open(&o, "checks", '{');
    nk_json_out_str(&o, "self_test", "running");
    nk_json_out_close(&o, '}');
    nk_json_out_close(&o, '}');
    nk_json_out_close(&o, '}');
    nk_wire_reply(req, nk_problem_status(err.code), &body);
}

int nk_api_health(struct nk_req *req, struct nk_err *err)
{
    (void)err;
    reply_ok(req, nk_req_app(req));
    return 0;
}

int nk_api_ready(struct nk_req *req, struct nk_err *err)
{
    const struct nk_api *api = nk_req_app(req);

    (void)err;
    if (api->kernel->complete)
        reply_ok(req, api);
    else
        reply_starting(req);
    return 0;
}
