/* The operations of /v1/files that are one call: stat, mkdir, move, copy, chmod, delete; and
 * DELETE /v1/workspace. */
#include "api/file_call.h"
#include "api/handlers.h"
#include "api/wire_files.h"
#include "base/json.h"
#include "http/reply.h"
#include "http/request.h"
#include "tenant/state.h"

static void answer_entry(struct nk_req *req, struct nk_op *op)
{
    nk_wire_files_reply(req, 200, &op->entry);
}

static void answer_empty(struct nk_req *req, struct nk_op *op)
{
    (void)op;
    nk_reply_empty(req, 204);
}

/* A call whose path is in the query. */
static struct nk_file_call *by_query(struct nk_req *req, struct nk_err *err)
{
    struct nk_file_call *call;
    const char *path;
    size_t len;

    if (nk_file_call_path(req, "path", NULL, &path, &len, err) < 0)
        return NULL;
    call = nk_file_call_new(req, err);
    if (!call || nk_file_call_set_path(call, path, len, err) == 0)
        return call;
    nk_file_call_free(call);
    return NULL;
}

int nk_api_file_stat(struct nk_req *req, struct nk_err *err)
{
    struct nk_file_call *call = by_query(req, err);

    if (!call)
        return -1;
    nk_file_call_start(call, nk_op_stat, answer_entry);
    return 0;
}

int nk_api_file_delete(struct nk_req *req, struct nk_err *err)
{
    bool recursive = false;
    struct nk_file_call *call;

    if (nk_req_query_bool(req, "recursive", &recursive, err) < 0)
        return -1;
    call = by_query(req, err);
    if (!call)
        return -1;
    call->op.recursive = recursive;
    nk_file_call_start(call, nk_op_remove, answer_empty);
    return 0;
}

int nk_api_workspace_delete(struct nk_req *req, struct nk_err *err)
{
    struct nk_file_call *call = nk_file_call_new(req, err);

    if (!call)
        return -1;
    if (nk_file_call_set_path(call, ".", 1, err) < 0) {
        nk_file_call_free(call);
        return -1;
    }
    if (nk_req_identity(req))
        call->op.keep = nk_state_folders;
    nk_file_call_start(call, nk_op_empty, answer_empty);
    return 0;
}

enum fields { WITH_TO = 1, WITH_MODE = 2, WITH_OVERWRITE = 4, WITH_RECURSIVE = 8 };

static int check_names(const struct nk_json *object, unsigned fields, struct nk_err *err)
{
    const char *names[9] = {"path", "path_base64"};
    size_t count = 2;

    if (fields & WITH_TO) {
        names[count++] = "to";
        names[count++] = "to_base64";
    }
    if (fields & WITH_MODE)
        names[count++] = "mode";
    if (fields & WITH_OVERWRITE)
        names[count++] = "overwrite";
    if (fields & WITH_RECURSIVE)
        names[count++] = "recursive";
    return nk_json_only(object, names, count, err);
}

static int read_fields(struct nk_file_call *call, unsigned fields, struct nk_err *err)
{
    const struct nk_json *object = nk_req_json(call->req);
    const char *mode = NULL;

    if (check_names(object, fields, err) < 0)
        return -1;
    if (nk_file_call_read(call, object, fields & WITH_TO, err) < 0)
        return -1;
    if (nk_json_read_str(object, "mode", &mode, err) < 0 ||
        nk_file_call_mode(mode, &call->op.mode, err) < 0)
        return -1;
    if (nk_json_read_bool(object, "overwrite", &call->op.overwrite, err) < 0)
        return -1;
    return nk_json_read_bool(object, "recursive", &call->op.recursive, err);
}

/* A call whose paths are in the body. */
static struct nk_file_call *by_body(struct nk_req *req, unsigned fields, struct nk_err *err)
{
    struct nk_file_call *call = nk_file_call_new(req, err);

    if (!call || read_fields(call, fields, err) == 0)
        return call;
    nk_file_call_free(call);
    return NULL;
}

int nk_api_file_mkdir(struct nk_req *req, struct nk_err *err)
{
    struct nk_file_call *call = by_body(req, WITH_MODE, err);

    if (!call)
        return -1;
    if (!nk_json_get(nk_req_json(req), "mode"))
        call->op.mode = 0755;
    nk_file_call_start_bound(call, nk_op_mkdir, answer_entry);
    return 0;
}

int nk_api_file_chmod(struct nk_req *req, struct nk_err *err)
{
    struct nk_file_call *call;

    if (!nk_json_get(nk_req_json(req), "mode"))
        return nk_fail(err, NK_BAD_REQUEST, "mode is missing");
    call = by_body(req, WITH_MODE | WITH_RECURSIVE, err);
    if (!call)
        return -1;
    nk_file_call_start(call, nk_op_chmod, answer_entry);
    return 0;
}

typedef void (*start_fn)(struct nk_file_call *call, int (*slice)(struct nk_task *t),
                         void (*answer)(struct nk_req *req, struct nk_op *op));

static int two_paths(struct nk_req *req, start_fn start, int (*slice)(struct nk_task *t),
                     struct nk_err *err)
{
    struct nk_file_call *call = by_body(req, WITH_TO | WITH_OVERWRITE, err);

    if (!call)
        return -1;
    nk_temp_name(call->op.temp);
    call->op.task.undo = nk_op_copy_undo;
    start(call, slice, answer_entry);
    return 0;
}

int nk_api_file_move(struct nk_req *req, struct nk_err *err)
{
    return two_paths(req, nk_file_call_start, nk_op_move, err);
}

int nk_api_file_copy(struct nk_req *req, struct nk_err *err)
{
    return two_paths(req, nk_file_call_start_bound, nk_op_copy, err);
}
