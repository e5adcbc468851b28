#include "http/request.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "http/conn.h"
#include "http/dispatch.h"
#include "http/inside.h"
#include "http/sender.h"

void *nk_req_app(const struct nk_req *req)
{
    return req->conn->server->cfg.hooks.app;
}

const struct nk_route *nk_req_route(const struct nk_req *req)
{
    return req->match.route;
}

enum nk_method nk_req_method(const struct nk_req *req)
{
    return req->head->method;
}

const char *nk_req_path(const struct nk_req *req)
{
    return req->head->path;
}

static bool usable_id(const char *id)
{
    size_t len = 0;

    for (; id[len]; len++) {
        if (id[len] <= 0x20 || id[len] >= 0x7f || len == 128)
            return false;
    }
    return len > 0;
}

const char *nk_req_id(const struct nk_req *req)
{
    const char *given = req->headed ? nk_head_field(req->head, "x-request-id", 0) : NULL;

    return given && usable_id(given) ? given : req->id_made;
}

uint64_t nk_req_started_ms(const struct nk_req *req)
{
    return req->started_ms;
}

struct nk_arena *nk_req_arena(struct nk_req *req)
{
    return &req->arena;
}

bool nk_req_is_local(const struct nk_req *req)
{
    return req->conn->local;
}

const char *nk_req_param(const struct nk_req *req, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < req->match.param_count; i++) {
        if (req->match.params[i].name_len == len &&
            memcmp(req->match.params[i].name, name, len) == 0)
            return req->params[i];
    }
    return NULL;
}

const char *nk_req_query_nth(const struct nk_req *req, const char *name, size_t nth)
{
    for (size_t i = 0; i < req->query.count; i++) {
        if (strcmp(req->query.pair[i].name, name) == 0 && nth-- == 0)
            return req->query.pair[i].value;
    }
    return NULL;
}

const char *nk_req_query(const struct nk_req *req, const char *name)
{
    return nk_req_query_nth(req, name, 0);
}

size_t nk_req_query_len(const struct nk_req *req, const char *name)
{
    const char *value = nk_req_query(req, name);

    return value ? strlen(value) : 0;
}

int nk_req_query_bool(const struct nk_req *req, const char *name, bool *out, struct nk_err *err)
{
    const char *value = nk_req_query(req, name);

    if (!value)
        return 0;
    if (strcmp(value, "true") == 0 || strcmp(value, "1") == 0)
        *out = true;
    else if (strcmp(value, "false") == 0 || strcmp(value, "0") == 0)
        *out = false;
    else
        return nk_fail(err, NK_BAD_REQUEST, "%s must be true or false, not %.100s", name, value);
    return 0;
}

int nk_req_query_u64(const struct nk_req *req, const char *name, uint64_t max, uint64_t *out,
                     struct nk_err *err)
{
    const char *value = nk_req_query(req, name);
    uint64_t n = 0;

    if (!value)
        return 0;
    for (const char *at = value; at == value || *at; at++) {
        unsigned digit = (unsigned)(unsigned char)*at - '0';

        if (digit > 9)
            return nk_fail(err, NK_BAD_REQUEST, "%s must be a whole number, not %.100s", name,
                           value);
        if (digit > max || n > (max - digit) / 10)
            return nk_fail(err, NK_BAD_REQUEST, "%s must be at most %llu", name,
                           (unsigned long long)max);
        n = n * 10 + digit;
    }
    *out = n;
    return 0;
}

const char *nk_req_header(const struct nk_req *req, const char *name)
{
    if (!req->headed)
        return NULL;
    if (req->head->authority && strcasecmp(name, "host") == 0)
        return req->head->authority;
    return nk_head_field(req->head, name, 0);
}

unsigned nk_req_header_count(const struct nk_req *req, const char *name)
{
    unsigned n = 0;

    while (req->headed && nk_head_field(req->head, name, n))
        n++;
    return n;
}

const struct nk_json *nk_req_json(const struct nk_req *req)
{
    return req->json;
}

const void *nk_req_body(const struct nk_req *req, size_t *out_len)
{
    *out_len = nk_buf_left(&req->body);
    return *out_len > 0 ? (const void *)nk_buf_front(&req->body) : "";
}

int64_t nk_req_content_length(const struct nk_req *req)
{
    return req->head->content_length;
}

void nk_req_set_body_sink(struct nk_req *req, const struct nk_body_sink *sink)
{
    req->sink = sink;
}

void nk_req_pause_body(struct nk_req *req, bool pause)
{
    uint64_t now = uv_now(req->conn->server->loop);

    if (req->paused == pause)
        return;
    req->paused = pause;
    if (pause) {
        req->paused_at_ms = now;
        return;
    }
    req->body_started_ms += now - req->paused_at_ms;
    nk_dispatch_continue(req);
    nk_conn_touch(req->conn);
}

void nk_req_body_read(struct nk_req *req, uint64_t n)
{
    req->lent = false;
    req->dry = n == 0;
    req->body_seen += n;
    req->conn->server->stats.bytes_in += n;
    (void)nk_parser_skip(req->parser, n);
    nk_req_pause_body(req, false);
}

void nk_req_set_ctx(struct nk_req *req, void *ctx)
{
    req->ctx = ctx;
}

void *nk_req_ctx(const struct nk_req *req)
{
    return req->ctx;
}

void nk_req_set_counted(struct nk_req *req)
{
    req->counted = true;
}

bool nk_req_is_counted(const struct nk_req *req)
{
    return req->counted;
}

void nk_req_set_identity(struct nk_req *req, void *identity)
{
    req->identity = identity;
}

void *nk_req_identity(const struct nk_req *req)
{
    return req->identity;
}

void nk_req_on_close(struct nk_req *req, nk_req_close_fn fn, void *ctx)
{
    req->close_fn = fn;
    req->close_ctx = ctx;
}

void nk_req_on_half_close(struct nk_req *req, void (*fn)(struct nk_req *req, void *ctx), void *ctx)
{
    req->half_close_fn = fn;
    req->half_close_ctx = ctx;
    nk_conn_touch(req->conn);
}

void nk_req_admit(struct nk_req *req, const struct nk_err *refused)
{
    nk_dispatch_admit(req, refused);
}

void nk_req_fail(struct nk_req *req, const struct nk_err *err)
{
    if (req->replied)
        return;
    req->sink = NULL;
    req->collecting = false;
    req->in_problem = true;
    req->conn->server->cfg.hooks.problem(req, err);
    if (!req->replied)
        nk_sender_last_word(req);
}
