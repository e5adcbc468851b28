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
    struct nk_quota_ask ask;
    struct nk_holder holder;
    uint64_t came; /* bytes of the body */
    bool judged;   /* the quota has room for what is known of it */
};

static void refuse(struct put_call *call, const struct nk_err *err)
{
    nk_upload_drop(&call->upload);
    nk_req_fail(call->req, err);
    nk_req_pause_body(call->req, false); /* what is left of a refused body is read away */
}

/* Before the body, now that it is known what it takes the place of. */
static int judge(struct put_call *call, struct nk_err *err)
{
    int64_t size = nk_req_content_length(call->req);
    uint64_t old = 0;
    bool replaces = nk_upload_replaces(call->upload, &old);
    struct nk_tally_file file;

    call->judged = true;
    nk_upload_file(call->upload, &file.dev, &file.ino);
    nk_holder_file(&call->holder, &file);
    nk_holder_credit(&call->holder, old);
    return nk_holder_take(&call->holder, size > 0 ? (uint64_t)size : 0, !replaces, err);
}

static void on_room(void *ctx)
{
    struct put_call *call = ctx;
    struct nk_err err;

    if (!call->judged && judge(call, &err) < 0)
        refuse(call, &err);
    else
        nk_req_pause_body(call->req, false);
}

static void on_read(void *ctx, uint64_t bytes)
{
    struct put_call *call = ctx;

    call->came += bytes;
    nk_req_body_read(call->req, bytes);
}

static void keep(struct put_call *call, const struct nk_entry *entry, bool created)
{
    uint64_t old = 0;

    (void)nk_upload_replaces(call->upload, &old);
    nk_holder_keep(&call->holder, (uint64_t)entry->st.st_size,
                   created + nk_upload_made(call->upload), created ? 0 : old);
}

static void on_over(void *ctx, const struct nk_entry *entry, bool created, const struct nk_err *err)
{
    struct put_call *call = ctx;

    if (err) {
        nk_req_fail(call->req, err);
    } else {
        keep(call, entry, created);
        nk_wire_files_reply(call->req, created ? 201 : 200, entry);
    }
    nk_req_pause_body(call->req, false); /* what is left of a refused body is read away */
}

static int on_data(struct nk_req *req, const void *data, size_t len, struct nk_err *err)
{
    struct put_call *call = nk_req_ctx(req);

    call->came += len;
    if (call->came > call->holder.bytes &&
        nk_holder_take(&call->holder, call->came - call->holder.bytes, 0, err) < 0)
        return -1;
    if (!nk_upload_write(call->upload, data, len))
        nk_req_pause_body(req, true);
    return 0;
}

static bool on_readable(struct nk_req *req, int socket, uint64_t max)
{
    struct put_call *call = nk_req_ctx(req);
    struct nk_err err;

    /* What is held beforehand needs no look at each piece. */
    if (call->came + max > call->holder.bytes &&
        nk_holder_take(&call->holder, call->came + max - call->holder.bytes, 0, &err) < 0)
        return false;
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
    nk_quota_leave(&call->ask);
    nk_holder_drop(&call->holder);
    nk_upload_drop(&call->upload);
    free(call);
}

static int read_query(struct put_call *call, struct nk_upload_config *cfg, struct nk_err *err)
{
    if (nk_file_call_path(call->req, "path", NULL, &cfg->path, &cfg->path_len, err) < 0)
        return -1;
    return nk_file_call_mode(nk_req_query(call->req, "mode"), &cfg->mode, err);
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

    if (read_query(call, &cfg, err) < 0 || nk_quota_check(scope.quota, err) < 0)
        return -1;
    nk_holder_init(&call->holder, scope.quota);
    return nk_upload_new(&cfg, &call->upload, err);
}

static void on_known(struct nk_quota_ask *ask)
{
    struct put_call *call = NK_CONTAINER_OF(ask, struct put_call, ask);
    struct nk_err err;

    if (begin(call, &err) < 0)
        refuse(call, &err);
}

static int start(struct put_call *call, struct nk_err *err)
{
    struct nk_upload_config ignored = {.mode = 0};

    /* What is wrong with it needs no count. */
    if (read_query(call, &ignored, err) < 0)
        return -1;
    call->ask.told = on_known;
    if (!nk_quota_know(nk_file_call_scope(call->req).quota, &call->ask))
        return 0;
    return begin(call, err);
}

int nk_api_file_write(struct nk_req *req, struct nk_err *err)
{
    static const struct nk_body_sink sink = {
        .on_data = on_data, .on_end = on_end, .on_readable = on_readable};
    struct put_call *call = calloc(1, sizeof *call);

    if (!call)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    call->req = req;
    if (start(call, err) < 0) {
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
