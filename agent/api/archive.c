/* GET and PUT /v1/archive: trees of files as one tar stream, both ways. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/whose.h"
#include "api/wire.h"
#include "base/arena.h"
#include "files/archives.h"
#include "http/reply.h"
#include "http/request.h"
#include "tenant/quota.h"

#define TAKE_MAX (1024u * 1024u) /* in one go, before others get their turn */

struct transfer {
    struct nk_source source;
    struct nk_req *req;         /* borrowed: until on_close */
    struct nk_archive *archive; /* owned */
    struct nk_quota_ask ask;
    struct nk_quota *quota; /* borrowed: of what is unpacked */
    const char *type;       /* of the answer */
    struct nk_err why;      /* of one that was broken off */
    bool begun;             /* the answer has */
    bool over;              /* the answer is given, or was broken off */
};

static int begin(struct transfer *t, const struct nk_tar_order *order,
                 const struct nk_archive_events *events, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(t->req);
    const struct nk_whose whose = nk_whose_of(t->req);

    if (!api->kernel->complete)
        return nk_fail(err, NK_STARTING, "the self-test of the sandbox is not over");
    return nk_archive_open(
        api->archives, order,
        &(struct nk_archive_user){.creds = &whose.user->creds, .share = whose.owner}, events,
        &t->archive, err);
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct transfer *t = ctx;

    (void)req;
    (void)gone;
    nk_quota_leave(&t->ask);
    if (t->quota)
        nk_quota_note(t->quota);
    nk_archive_close(&t->archive);
    free(t);
}

static struct transfer *new_transfer(struct nk_req *req, struct nk_err *err)
{
    struct transfer *t = calloc(1, sizeof *t);

    if (!t)
        (void)nk_fail(err, NK_OVERLOADED, "no memory for this request");
    else
        t->req = req;
    return t;
}

static void fill_places(struct nk_tar_order *order, const struct nk_req *req)
{
    const struct nk_api *api = nk_req_app(req);
    const struct nk_whose whose = nk_whose_of(req);

    order->writable = whose.writable;
    order->readable = whose.readable;
    order->openat2 = nk_has(api->kernel, NK_MECH_OPENAT2);
}

static enum nk_pull on_pull(struct nk_source *source, struct nk_buf *out, size_t room)
{
    struct transfer *t = NK_CONTAINER_OF(source, struct transfer, source);
    uint8_t *to = nk_buf_reserve(out, room);
    ssize_t n = to ? nk_archive_read(t->archive, to, room) : -ENOMEM;

    if (n == -EAGAIN)
        return NK_PULL_WAIT;
    if (n < 0 && t->why.code == NK_OK)
        return NK_PULL_FAIL;
    if (n < 0) {
        nk_buf_add_str(out, t->why.msg);
        return NK_PULL_BROKEN;
    }
    if (n == 0)
        return NK_PULL_END;
    nk_buf_commit(out, (size_t)n);
    return NK_PULL_MORE;
}

static size_t on_ready(struct nk_source *source)
{
    struct transfer *t = NK_CONTAINER_OF(source, struct transfer, source);

    return nk_archive_ready(t->archive);
}

static ssize_t on_send(struct nk_source *source, int socket, size_t len)
{
    struct transfer *t = NK_CONTAINER_OF(source, struct transfer, source);

    return nk_archive_send(t->archive, socket, len);
}

static void on_found(void *ctx)
{
    struct transfer *t = ctx;

    t->begun = true;
    nk_reply_stream(t->req, 200, t->type, &t->source, -1);
}

static void on_packed(void *ctx, const struct nk_tar_result *result, const struct nk_err *err)
{
    struct transfer *t = ctx;

    (void)result;
    if (t->begun && err) {
        t->why = *err;
        nk_problem_broken_off(t->req, err);
    } else if (err)
        nk_req_fail(t->req, err);
    /* A worker that says it is done before it was ready is not ours any more. */
    if (!t->begun && !err)
        nk_req_fail(t->req, &(struct nk_err){.code = NK_INTERNAL, .msg = "the archive failed"});
    t->over = !t->begun;
}

static void on_bytes(void *ctx)
{
    struct transfer *t = ctx;

    if (t->begun)
        nk_reply_wake(t->req);
}

static int read_format(struct transfer *t, enum nk_tar_format *out, struct nk_err *err)
{
    const char *name = nk_req_query(t->req, "format");

    t->type = "application/x-tar";
    *out = NK_TAR_PLAIN;
    if (!name || strcmp(name, "tar") == 0)
        return 0;
    if (strcmp(name, "tar.gz") == 0) {
        t->type = "application/gzip";
        *out = NK_TAR_GZIP;
        return 0;
    }
    t->type = "application/zstd";
    *out = NK_TAR_ZSTD;
    if (strcmp(name, "tar.zst") == 0)
        return 0;
    return nk_fail(err, NK_BAD_REQUEST, "format must be tar, tar.gz or tar.zst, not %.100s", name);
}

static int read_links(const struct nk_req *req, bool *out, struct nk_err *err)
{
    const char *links = nk_req_query(req, "links");

    *out = links && strcmp(links, "skip") == 0;
    if (!links || *out || strcmp(links, "keep") == 0)
        return 0;
    return nk_fail(err, NK_BAD_REQUEST, "links must be keep or skip, not %.100s", links);
}

static int read_paths(struct nk_req *req, const char *const **out, struct nk_err *err)
{
    size_t count = 0;
    const char **list;

    while (nk_req_query_nth(req, "path", count))
        count++;
    if (count == 0)
        return nk_fail(err, NK_BAD_REQUEST, "path is missing");
    list = nk_arena_alloc(nk_req_arena(req), (count + 1) * sizeof *list);
    if (!list)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    for (size_t i = 0; i < count; i++)
        list[i] = nk_req_query_nth(req, "path", i);
    *out = list;
    return 0;
}

static int start_packing(struct transfer *t, struct nk_err *err)
{
    const struct nk_archive_events events = {
        .ready = on_found, .more = on_bytes, .over = on_packed, .ctx = t};
    struct nk_tar_order order = {.pack = true, .base = nk_req_query(t->req, "base")};

    fill_places(&order, t->req);
    if (read_paths(t->req, &order.paths, err) < 0 || read_format(t, &order.format, err) < 0 ||
        read_links(t->req, &order.skip_links, err) < 0)
        return -1;
    return begin(t, &order, &events, err);
}

int nk_api_archive_read(struct nk_req *req, struct nk_err *err)
{
    struct transfer *t = new_transfer(req, err);

    if (!t)
        return -1;
    t->source = (struct nk_source){.pull = on_pull, .ready = on_ready, .send = on_send};
    if (start_packing(t, err) < 0) {
        free(t);
        return -1;
    }
    nk_req_on_close(req, on_close, t);
    return 0;
}

static void write_result(struct nk_json_out *o, const struct nk_tar_result *r)
{
    nk_json_out_u64(o, "files", r->files);
    nk_json_out_u64(o, "dirs", r->dirs);
    nk_json_out_u64(o, "links", r->links);
    nk_json_out_u64(o, "bytes", r->bytes);
    nk_json_out_u64(o, "refused_count", r->refused_count);
    nk_json_out_open(o, "refused", '[');
    for (size_t i = 0; i < r->shown; i++) {
        const struct nk_tar_refusal *refusal = &r->refused[i];

        nk_json_out_open(o, NULL, '{');
        nk_json_out_bytes(o, "path", refusal->path, strlen(refusal->path));
        nk_json_out_bytes(o, "reason", refusal->reason, strlen(refusal->reason));
        nk_json_out_close(o, '}');
    }
    nk_json_out_close(o, ']');
}

/* An error with what was done beside it: what is there now is not nothing. */
static void reply_failed(struct nk_req *req, const struct nk_tar_result *result,
                         const struct nk_err *err)
{
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};

    nk_json_out_open(&o, NULL, '{');
    nk_json_out_open(&o, "error", '{');
    nk_problem_members(&o, err);
    nk_json_out_close(&o, '}');
    nk_json_out_open(&o, "done", '{');
    write_result(&o, result);
    nk_json_out_close(&o, '}');
    nk_json_out_close(&o, '}');
    nk_problem_headers(req, err);
    nk_wire_reply(req, nk_problem_status(err->code), &body);
}

static void on_unpacked(void *ctx, const struct nk_tar_result *result, const struct nk_err *err)
{
    struct transfer *t = ctx;
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};

    t->over = true;
    if (err && t->begun) {
        reply_failed(t->req, result, err);
        return;
    }
    if (err) {
        nk_req_fail(t->req, err);
        return;
    }
    nk_json_out_open(&o, NULL, '{');
    write_result(&o, result);
    nk_json_out_close(&o, '}');
    nk_wire_reply(t->req, 200, &body);
}

static void on_dest_there(void *ctx)
{
    struct transfer *t = ctx;

    t->begun = true;
}

static void on_room(void *ctx)
{
    struct transfer *t = ctx;

    if (!t->over)
        nk_req_pause_body(t->req, false);
}

static int on_data(struct nk_req *req, const void *data, size_t len, struct nk_err *err)
{
    struct transfer *t = nk_req_ctx(req);

    (void)err;
    if (nk_archive_write(t->archive, data, len))
        nk_req_pause_body(req, true);
    return 0;
}

static ssize_t on_take(struct nk_req *req, int socket, uint64_t max)
{
    struct transfer *t = nk_req_ctx(req);
    ssize_t n = nk_archive_take(t->archive, socket, max < TAKE_MAX ? (size_t)max : TAKE_MAX);

    if (n == -EAGAIN)
        nk_req_pause_body(req, true);
    return n;
}

static int on_end(struct nk_req *req, struct nk_err *err)
{
    struct transfer *t = nk_req_ctx(req);

    (void)err;
    nk_archive_end(t->archive);
    return 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int start_unpacking(struct transfer *t, struct nk_err *err)
{
    const struct nk_archive_events events = {
        .ready = on_dest_there, .more = on_room, .over = on_unpacked, .ctx = t};
    const char *paths[] = {nk_req_query(t->req, "path"), NULL};
    const struct nk_tar_room room = {
        .bytes = least(nk_quota_bytes_left(t->quota), NK_TAR_EXTRACT_BYTES),
        .files = least(nk_quota_files_left(t->quota), NK_TAR_EXTRACT_ENTRIES)};
    struct nk_tar_order order = {.paths = paths};

    if (nk_req_query_bool(t->req, "strict", &order.strict, err) < 0 ||
        nk_quota_check(t->quota, err) < 0)
        return -1;
    order.room = nk_quota_is_set(t->quota) ? &room : NULL;
    fill_places(&order, t->req);
    return begin(t, &order, &events, err);
}

static void on_known(struct nk_quota_ask *ask)
{
    struct transfer *t = NK_CONTAINER_OF(ask, struct transfer, ask);
    struct nk_err err;

    if (start_unpacking(t, &err) < 0) {
        t->over = true;
        nk_req_fail(t->req, &err);
    }
    nk_req_pause_body(t->req, false);
}

static int ask_for_room(struct transfer *t, struct nk_err *err)
{
    bool ignored;

    if (!nk_req_query(t->req, "path"))
        return nk_fail(err, NK_BAD_REQUEST, "path is missing");
    if (nk_req_query_bool(t->req, "strict", &ignored, err) < 0)
        return -1;
    t->quota = nk_whose_of(t->req).quota;
    t->ask.told = on_known;
    if (nk_quota_know(t->quota, &t->ask))
        return start_unpacking(t, err);
    nk_req_pause_body(t->req, true);
    return 0;
}

int nk_api_archive_write(struct nk_req *req, struct nk_err *err)
{
    static const struct nk_body_sink sink = {
        .on_data = on_data, .on_end = on_end, .on_take = on_take};
    struct transfer *t = new_transfer(req, err);

    if (!t)
        return -1;
    if (ask_for_room(t, err) < 0) {
        free(t);
        return -1;
    }
    nk_req_set_ctx(req, t);
    nk_req_set_body_sink(req, &sink);
    nk_req_on_close(req, on_close, t);
    return 0;
}
