/* PUT /v1/files: the body becomes a file, whole or not at all. */
#include <stdlib.h>

#include "api/file_call.h"
#include "api/handlers.h"
#include "api/wire_files.h"
#include "files/upload.h"
#include "http/request.h"

struct put_call {
    struct nk_upload *upload; /* owned */
    struct nk_req *req;       /* borrowed: until on_close */
};

static void on_room(void *ctx)
{
    struct put_call *call = ctx;

    nk_req_pause_body(call->req, false);
}

static void on_read(void *ctx, uint64_t bytes)
{
    struct put_call *call = ctx;

    nk_req_body_read(call->req, bytes);
}

static void on_over(void *ctx, const struct nk_entry *entry, bool created, const struct nk_err *err)
{
    struct put_call *call = ctx;

    if (err)
        nk_req_fail(call->req, err);
    else
        nk_wire_files_reply(call->req, created ? 201 : 200, entry);
    nk_req_pause_body(call->req, false); /* what is left of a refused body is read away */
}

static int on_data(struct nk_req *req, const void *data, size_t len, struct nk_err *err)
{
    struct put_call *call = nk_req_ctx(req);

    (void)err;
    if (!nk_upload_write(call->upload, data, len))
        nk_req_pause_body(req, true);
    return 0;
}

static bool on_readable(struct nk_req *req, int socket, uint64_t max)
{
    struct put_call *call = nk_req_ctx(req);

    return nk_upload_read(call->upload, socket, max);
}

static int on_end(struct nk_req *req, struct nk_err *err)
{
    struct put_call *call = nk_req_ctx(req);

    (void)err;
    nk_upload_end(call->upload);
    return 0;
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct put_call *call = ctx;

    (void)req;
    (void)gone;
    nk_upload_drop(&call->upload);
    free(call);
}

static int begin(struct put_call *call, struct nk_err *err)
{
    static const struct nk_upload_events events = {
        .on_room = on_room, .on_read = on_read, .on_over = on_over};
    struct nk_file_scope scope = nk_file_call_scope(call->req);
    struct nk_upload_config cfg = {.jobs = scope.jobs,
                                   .as = scope.as,
                                   .share = scope.share,
                                   .roots = scope.roots,
                                   .mode = NK_UPLOAD_KEEP_MODE,
                                   .size = nk_req_content_length(call->req),
                                   .events = &events,
                                   .ctx = call};

    if (nk_file_call_path(call->req, "path", NULL, &cfg.path, &cfg.path_len, err) < 0)
        return -1;
    if (nk_file_call_mode(nk_req_query(call->req, "mode"), &cfg.mode, err) < 0)
        return -1;
    return nk_upload_new(&cfg, &call->upload, err);
}

int nk_api_file_write(struct nk_req *req, struct nk_err *err)
{
    static const struct nk_body_sink sink = {
        .on_data = on_data, .on_end = on_end, .on_readable = on_readable};
    struct put_call *call = calloc(1, sizeof *call);

    if (!call)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    call->req = req;
    if (begin(call, err) < 0) {
        free(call);
        return -1;
    }
    nk_req_set_ctx(req, call);
    nk_req_on_close(req, on_close, call);
    nk_req_set_body_sink(req, &sink);
    /* Not before the file is open: what is known to fail is answered without the body. */
    nk_req_pause_body(req, true);
    return 0;
}
