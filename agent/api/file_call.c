#include "api/file_call.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/whose.h"
#include "base/json.h"
#include "http/request.h"

struct nk_file_scope nk_file_call_scope(const struct nk_req *req)
{
    const struct nk_api *api = nk_req_app(req);
    const struct nk_whose whose = nk_whose_of(req);

    return (struct nk_file_scope){.jobs = api->jobs,
                                  .roots = whose.roots,
                                  .as = whose.files_as,
                                  .share = whose.owner,
                                  .quota = whose.quota};
}

int nk_file_call_path(const struct nk_req *req, const char *name, const char *fallback,
                      const char **out, size_t *out_len, struct nk_err *err)
{
    const char *path = nk_req_query(req, name);
    size_t len = path ? nk_req_query_len(req, name) : 0;

    if (len == 0 && !fallback)
        return nk_fail(err, NK_BAD_PATH, "%s is %s", name, path ? "empty" : "missing");
    *out = len > 0 ? path : fallback;
    *out_len = len > 0 ? len : strlen(fallback);
    return 0;
}

int nk_file_call_mode(const char *text, mode_t *out, struct nk_err *err)
{
    size_t len = text ? strlen(text) : 0;

    if (!text)
        return 0;
    if (len < 3 || len > 4 || strspn(text, "01234567") != len)
        return nk_fail(err, NK_BAD_REQUEST, "mode must be 3 or 4 octal digits, not %.40s", text);
    if (len == 4 && text[0] != '0')
        return nk_fail(err, NK_BAD_REQUEST, "mode %s: set-id and sticky bits are not set here",
                       text);
    *out = (mode_t)strtoul(text, NULL, 8);
    return 0;
}

struct nk_file_call *nk_file_call_new(struct nk_req *req, struct nk_err *err)
{
    struct nk_file_call *call = malloc(sizeof *call);

    if (!call) {
        (void)nk_fail(err, NK_OVERLOADED, "no memory for this request");
        return NULL;
    }
    memset(call, 0, sizeof *call);
    nk_op_init(&call->op);
    call->op.roots = nk_file_call_scope(req).roots;
    call->req = req;
    return call;
}

void nk_file_call_free(struct nk_file_call *call)
{
    nk_op_fini(&call->op);
    free(call);
}

int nk_file_call_set_path(struct nk_file_call *call, const char *path, size_t len,
                          struct nk_err *err)
{
    call->op.path = malloc(len + 1);
    if (!call->op.path)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    memcpy(call->op.path, path, len);
    call->op.path[len] = '\0';
    call->op.path_len = len;
    return 0;
}

static int read_path(const struct nk_json *object, const char *key, char **out, size_t *out_len,
                     struct nk_err *err)
{
    uint8_t *data = NULL;
    bool given = false;

    if (nk_json_read_bytes(object, key, &data, out_len, &given, err) < 0)
        return -1;
    *out = (char *)data;
    if (!given || *out_len == 0)
        return nk_fail(err, NK_BAD_PATH, "%s is %s", key, given ? "empty" : "missing");
    return 0;
}

int nk_file_call_read(struct nk_file_call *call, const struct nk_json *object, bool to,
                      struct nk_err *err)
{
    struct nk_op *op = &call->op;

    if (read_path(object, "path", &op->path, &op->path_len, err) < 0)
        return -1;
    return to ? read_path(object, "to", &op->to, &op->to_len, err) : 0;
}

static void on_over(struct nk_task *t)
{
    struct nk_file_call *call = NK_CONTAINER_OF(nk_op_of(t), struct nk_file_call, op);

    if (call->quota)
        nk_quota_note(call->quota);
    if (!call->req)
        nk_file_call_free(call);
    else if (t->result < 0)
        nk_req_fail(call->req, &t->err);
    else
        call->answer(call->req, &call->op);
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct nk_file_call *call = ctx;

    (void)req;
    (void)gone;
    call->req = NULL;
    nk_quota_leave(&call->ask);
    if (call->op.task.running)
        nk_task_stop(&call->op.task);
    else
        nk_file_call_free(call);
}

static void start(struct nk_file_call *call)
{
    struct nk_file_scope scope = nk_file_call_scope(call->req);

    nk_task_start(&call->op.task, scope.jobs, scope.as, scope.share);
}

void nk_file_call_start(struct nk_file_call *call, int (*slice)(struct nk_task *t),
                        void (*answer)(struct nk_req *req, struct nk_op *op))
{
    call->op.task.slice = slice;
    call->op.task.over = on_over;
    call->answer = answer;
    nk_req_on_close(call->req, on_close, call);
    if (slice != nk_op_stat && slice != nk_op_open)
        call->quota = nk_file_call_scope(call->req).quota;
    start(call);
}

static int bind_to(struct nk_op *op, struct nk_quota *quota, struct nk_err *err)
{
    if (nk_quota_check(quota, err) < 0)
        return -1;
    op->bounded = nk_quota_is_set(quota);
    op->room_bytes = nk_quota_bytes_left(quota);
    op->room_files = nk_quota_files_left(quota);
    if (op->room_files > 0)
        return 0;
    return nk_fail(err, NK_QUOTA_EXCEEDED, "no more files may be kept");
}

static void on_known(struct nk_quota_ask *ask)
{
    struct nk_file_call *call = NK_CONTAINER_OF(ask, struct nk_file_call, ask);
    struct nk_err err;

    if (bind_to(&call->op, call->quota, &err) < 0)
        nk_req_fail(call->req, &err);
    else
        start(call);
}

void nk_file_call_start_bound(struct nk_file_call *call, int (*slice)(struct nk_task *t),
                              void (*answer)(struct nk_req *req, struct nk_op *op))
{
    call->op.task.slice = slice;
    call->op.task.over = on_over;
    call->answer = answer;
    nk_req_on_close(call->req, on_close, call);
    call->ask.told = on_known;
    call->quota = nk_file_call_scope(call->req).quota;
    if (nk_quota_know(call->quota, &call->ask))
        on_known(&call->ask);
}
