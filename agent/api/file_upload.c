/* POST /v1/files: a multipart body, each of its parts a file. */
#include <stdlib.h>

#include "api/handlers.h"
#include "api/problem.h"
#include "api/upload_parts.h"
#include "api/wire.h"
#include "http/reply.h"
#include "http/request.h"

static void reply(struct nk_parts *p, int status, const struct nk_err *err)
{
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};

    nk_json_out_open(&o, NULL, '{');
    if (err) {
        nk_json_out_open(&o, "error", '{');
        nk_problem_members(&o, err);
        nk_json_out_close(&o, '}');
    }
    nk_json_out_close(&p->out, ']');
    body.failed |= p->files.failed;
    if (!body.failed)
        nk_json_out_raw(&o, "files", nk_buf_front(&p->files), nk_buf_left(&p->files));
    nk_json_out_close(&o, '}');
    nk_wire_reply(p->req, status, &body);
}

static void on_over(struct nk_parts *p, const struct nk_err *err)
{
    if (err)
        nk_problem_headers(p->req, err);
    reply(p, err ? nk_problem_status(err->code) : 200, err);
}

static int on_data(struct nk_req *req, const void *data, size_t len, struct nk_err *err)
{
    (void)err;
    nk_parts_data(nk_req_ctx(req), data, len);
    return 0;
}

static int on_end(struct nk_req *req, struct nk_err *err)
{
    (void)err;
    nk_parts_end(nk_req_ctx(req));
    return 0;
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    (void)req;
    (void)gone;
    nk_parts_fini(ctx);
    free(ctx);
}

int nk_api_file_upload(struct nk_req *req, struct nk_err *err)
{
    static const struct nk_body_sink sink = {.on_data = on_data, .on_end = on_end};
    static const struct nk_parts_events events = {.on_over = on_over};
    struct nk_parts *parts = calloc(1, sizeof *parts);
    const char *dir;
    size_t len;

    if (!parts)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    if (nk_file_call_path(req, "dir", ".", &dir, &len, err) < 0 ||
        nk_parts_init(parts, req, &events, dir, err) < 0) {
        free(parts);
        return -1;
    }
    nk_req_set_ctx(req, parts);
    nk_req_on_close(req, on_close, parts);
    nk_req_set_body_sink(req, &sink);
    return 0;
}
