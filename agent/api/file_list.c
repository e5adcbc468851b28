/* GET /v1/files/list: pages of a folder. The JSON of a page is written on the pool thread. */
#include <stdlib.h>
#include <string.h>

#include "api/file_call.h"
#include "api/handlers.h"
#include "api/wire.h"
#include "api/wire_files.h"
#include "base/base64.h"
#include "files/listing.h"
#include "http/request.h"

#define LIMIT 1000
#define LIMIT_MAX 10000

struct list_call {
    struct nk_listing listing;
    struct nk_buf body; /* the job's while it runs */
    struct nk_json_out out;
    struct nk_req *req; /* borrowed: NULL once it is over */
};

static struct list_call *call_of(struct nk_listing *l)
{
    return NK_CONTAINER_OF(l, struct list_call, listing);
}

static void free_call(struct list_call *call)
{
    nk_listing_fini(&call->listing);
    nk_buf_fini(&call->body);
    free(call);
}

static int on_entry(struct nk_listing *l, const struct nk_entry *entry)
{
    struct list_call *call = call_of(l);

    nk_json_out_open(&call->out, NULL, '{');
    nk_wire_files_entry(&call->out, entry);
    nk_json_out_close(&call->out, '}');
    return call->body.failed ? -1 : 0;
}

/* For a query without any escaping: the alphabet of URLs, no padding. */
static void write_cursor(struct list_call *call)
{
    struct nk_buf text = {0};

    nk_base64_encode(&text, call->listing.next, strlen(call->listing.next));
    for (size_t i = text.off; i < text.len; i++) {
        if (text.data[i] == '+')
            text.data[i] = '-';
        if (text.data[i] == '/')
            text.data[i] = '_';
    }
    while (nk_buf_left(&text) > 0 && text.data[text.len - 1] == '=')
        text.len--;
    call->body.failed |= text.failed;
    if (!text.failed)
        nk_json_out_strn(&call->out, "next", nk_buf_front(&text), nk_buf_left(&text));
    nk_buf_fini(&text);
}

static void reply(struct list_call *call)
{
    nk_json_out_close(&call->out, ']');
    if (call->listing.next)
        write_cursor(call);
    else
        nk_json_out_null(&call->out, "next");
    if (call->listing.too_deep)
        nk_json_out_bool(&call->out, "too_deep", true);
    nk_json_out_close(&call->out, '}');
    nk_wire_reply(call->req, 200, &call->body);
}

static void on_over(struct nk_task *t)
{
    struct list_call *call = call_of(NK_CONTAINER_OF(t, struct nk_listing, task));

    if (!call->req)
        free_call(call);
    else if (t->result < 0)
        nk_req_fail(call->req, &t->err);
    else
        reply(call);
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct list_call *call = ctx;

    (void)req;
    (void)gone;
    call->req = NULL;
    if (call->listing.task.running)
        nk_task_stop(&call->listing.task);
    else
        free_call(call);
}

static int read_cursor(struct nk_req *req, char **out, struct nk_err *err)
{
    const char *text = nk_req_query(req, "cursor");
    size_t len = text ? strlen(text) : 0;
    char *base64;
    size_t at = 0;

    if (!text)
        return 0;
    base64 = malloc(len + 4);
    *out = malloc(len + 4);
    if (!base64 || !*out) {
        free(base64);
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    }
    for (; at < len; at++)
        base64[at] = (char)(text[at] == '-' ? '+' : text[at] == '_' ? '/' : text[at]);
    while (at % 4 != 0)
        base64[at++] = '=';
    len = 0;
    if (nk_base64_decode(base64, at, (uint8_t *)*out, &len) < 0 || len == 0 ||
        memchr(*out, '\0', len)) {
        free(base64);
        return nk_fail(err, NK_BAD_REQUEST, "cursor is not one that a list has given");
    }
    free(base64);
    (*out)[len] = '\0';
    return 0;
}

static int read_query(struct nk_req *req, struct nk_listing *l, struct nk_err *err)
{
    uint64_t limit = LIMIT;
    uint64_t depth = 0;
    const char *path;

    if (nk_file_call_path(req, "path", ".", &path, &l->path_len, err) < 0 ||
        nk_req_query_bool(req, "recursive", &l->recursive, err) < 0 ||
        nk_req_query_u64(req, "depth", 65535, &depth, err) < 0 ||
        nk_req_query_u64(req, "limit", LIMIT_MAX, &limit, err) < 0 ||
        read_cursor(req, &l->after, err) < 0)
        return -1;
    if (limit == 0 || (nk_req_query(req, "depth") && depth == 0))
        return nk_fail(err, NK_BAD_REQUEST, "%s must be at least 1", limit ? "depth" : "limit");
    l->recursive |= depth > 0;
    l->depth = (unsigned)depth;
    l->limit = (size_t)limit;
    l->path = strndup(path, l->path_len);
    return l->path ? 0 : nk_fail(err, NK_OVERLOADED, "no memory for this request");
}

int nk_api_file_list(struct nk_req *req, struct nk_err *err)
{
    struct nk_file_scope scope = nk_file_call_scope(req);
    struct list_call *call = calloc(1, sizeof *call);

    if (!call)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    if (read_query(req, &call->listing, err) < 0) {
        free_call(call);
        return -1;
    }
    call->req = req;
    call->out.buf = &call->body;
    call->listing.roots = scope.roots;
    call->listing.each = on_entry;
    call->listing.task.slice = nk_listing_read;
    call->listing.task.over = on_over;
    nk_json_out_open(&call->out, NULL, '{');
    nk_json_out_open(&call->out, "entries", '[');
    nk_req_on_close(req, on_close, call);
    nk_task_start(&call->listing.task, scope.jobs, scope.as, scope.share);
    return 0;
}
