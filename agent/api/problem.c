#include "api/problem.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/utf8.h"
#include "http/reply.h"
#include "http/request.h"
#include "http/router.h"

struct row {
    int status;
    const char *name;
    const char *retry_after; /* seconds, or NULL */
};

static const struct row table[NK_CODE_COUNT] = {
    /* An error that nobody filled is our own mistake, and says so. */
    [NK_OK] = {500, "internal", NULL},
    [NK_BAD_REQUEST] = {400, "bad_request", NULL},
    [NK_BAD_JSON] = {400, "bad_json", NULL},
    [NK_BAD_PATH] = {400, "bad_path", NULL},
    [NK_BAD_IDENTITY] = {400, "bad_identity", NULL},
    [NK_BAD_LANGUAGE] = {400, "bad_language", NULL},
    [NK_BAD_SIGNAL] = {400, "bad_signal", NULL},
    [NK_EXEC_FAILED] = {400, "exec_failed", NULL},
    [NK_UNAUTHORIZED] = {401, "unauthorized", NULL},
    [NK_FORBIDDEN] = {403, "forbidden", NULL},
    [NK_NOT_FOUND] = {404, "not_found", NULL},
    [NK_METHOD_NOT_ALLOWED] = {405, "method_not_allowed", NULL},
    [NK_TIMEOUT] = {408, "timeout", NULL},
    [NK_BUSY] = {409, "busy", "1"},
    [NK_QUOTA_EXCEEDED] = {409, "quota_exceeded", NULL},
    [NK_EXISTS] = {409, "exists", NULL},
    [NK_NOT_EMPTY] = {409, "not_empty", NULL},
    [NK_PAUSED] = {409, "paused", NULL},
    [NK_CONFLICT] = {409, "conflict", NULL},
    [NK_GONE] = {410, "gone", NULL},
    [NK_PRECONDITION_FAILED] = {412, "precondition_failed", NULL},
    [NK_TOO_LARGE] = {413, "too_large", NULL},
    [NK_URI_TOO_LONG] = {414, "uri_too_long", NULL},
    [NK_UNSUPPORTED_MEDIA_TYPE] = {415, "unsupported_media_type", NULL},
    [NK_RANGE_NOT_SATISFIABLE] = {416, "range_not_satisfiable", NULL},
    [NK_EXPECTATION_FAILED] = {417, "expectation_failed", NULL},
    [NK_UPGRADE_REQUIRED] = {426, "upgrade_required", NULL},
    [NK_HEADERS_TOO_LARGE] = {431, "headers_too_large", NULL},
    [NK_INTERNAL] = {500, "internal", NULL},
    [NK_NOT_SUPPORTED] = {501, "not_supported", NULL},
    [NK_BAD_GATEWAY] = {502, "bad_gateway", NULL},
    [NK_STARTING] = {503, "starting", "1"},
    [NK_SHUTTING_DOWN] = {503, "shutting_down", NULL},
    [NK_OVERLOADED] = {503, "overloaded", "1"},
    [NK_GATEWAY_TIMEOUT] = {504, "gateway_timeout", NULL},
    [NK_HTTP_VERSION] = {505, "http_version", NULL},
    [NK_NO_SPACE] = {507, "no_space", NULL},
};

static const struct row *row_of(enum nk_code code)
{
    return (unsigned)code < NK_CODE_COUNT ? &table[code] : &table[NK_INTERNAL];
}

int nk_problem_status(enum nk_code code)
{
    return row_of(code)->status;
}

const char *nk_problem_name(enum nk_code code)
{
    return row_of(code)->name;
}

/* The sentence may name a client's bytes, cut anywhere: they are repaired, never refused. */
static void message(struct nk_json_out *o, const struct nk_err *err)
{
    struct nk_buf text = {0};

    (void)nk_utf8_repair(&text, err->msg, strnlen(err->msg, sizeof err->msg));
    if (text.failed)
        nk_json_out_str(o, "message", "out of memory");
    else
        nk_json_out_strn(o, "message", nk_buf_left(&text) ? nk_buf_front(&text) : (uint8_t *)"",
                         nk_buf_left(&text));
    nk_buf_fini(&text);
}

void nk_problem_members(struct nk_json_out *o, const struct nk_err *err)
{
    nk_json_out_str(o, "code", nk_problem_name(err->code));
    message(o, err);
    if (err->code == NK_EXEC_FAILED) {
        nk_json_out_str(o, "errno", err->sys ? nk_err_errno_name(err->sys) : NULL);
        nk_json_out_str(o, "stage", err->stage);
    }
    if (err->code == NK_GONE)
        nk_json_out_u64(o, "log_start", err->value);
}

static void add_allow(struct nk_req *req, uint64_t methods)
{
    struct nk_buf text = {0};

    for (int m = 0; m < NK_METHOD_COUNT; m++) {
        if (!(methods & (1u << m)))
            continue;
        if (nk_buf_left(&text) > 0)
            nk_buf_add_str(&text, ", ");
        nk_buf_add_str(&text, nk_router_method_name((enum nk_method)m));
    }
    nk_buf_add_char(&text, '\0');
    if (!text.failed)
        nk_reply_header(req, "Allow", (const char *)nk_buf_front(&text));
    nk_buf_fini(&text);
}

void nk_problem_headers(struct nk_req *req, const struct nk_err *err)
{
    const struct row *row = row_of(err->code);

    if (row->retry_after)
        nk_reply_header(req, "Retry-After", row->retry_after);
    if (err->code == NK_METHOD_NOT_ALLOWED)
        add_allow(req, err->value);
    if (err->code == NK_UNAUTHORIZED)
        nk_reply_header(req, "WWW-Authenticate", "Bearer");
    if (err->code == NK_UPGRADE_REQUIRED) {
        nk_reply_header(req, "Upgrade", "websocket");
        nk_reply_header(req, "Sec-WebSocket-Version", "13");
    }
}

static void log_err(enum nk_log_level level, const char *event, const struct nk_req *req,
                    const struct nk_err *err)
{
    const struct nk_log_field fields[] = {
        {"request_id", nk_req_id(req), 0},
        {"code", nk_problem_name(err->code), 0},
        {"errno", err->sys ? nk_err_errno_name(err->sys) : "none", 0},
        {NULL, NULL, 0},
    };

    nk_log_write(level, event, err->msg, fields);
}

void nk_problem_broken_off(struct nk_req *req, const struct nk_err *err)
{
    log_err(NK_LOG_WARN, "broken_off", req, err);
}

void nk_problem_reply(struct nk_req *req, const struct nk_err *err)
{
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};

    if (nk_problem_status(err->code) == 500)
        log_err(NK_LOG_ERROR, "fault", req, err);
    nk_problem_headers(req, err);
    nk_json_out_open(&o, NULL, '{');
    nk_json_out_open(&o, "error", '{');
    nk_problem_members(&o, err);
    nk_json_out_close(&o, '}');
    nk_json_out_close(&o, '}');
    nk_reply_take(req, nk_problem_status(err->code), "application/json", &body);
    nk_buf_fini(&body);
}
