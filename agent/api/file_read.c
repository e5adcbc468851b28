/* GET /v1/files: the bytes of a regular file, or a part of them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/file_call.h"
#include "api/handlers.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/scope.h"
#include "base/utf8.h"
#include "http/range.h"
#include "http/reply.h"
#include "http/request.h"

#define ETAG_MAX 112

/* RFC 8187: a name may hold any byte, a header only a few. */
static void add_disposition(struct nk_req *req, const char *name)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    struct nk_buf text = {0};
    struct nk_buf utf8 = {0};

    (void)nk_utf8_repair(&utf8, name, strlen(name));
    nk_buf_add_str(&text, "attachment; filename*=UTF-8''");
    for (size_t i = utf8.off; i < utf8.len && !utf8.failed; i++) {
        if (strchr(plain, utf8.data[i]))
            nk_buf_add_char(&text, (char)utf8.data[i]);
        else
            nk_buf_add_fmt(&text, "%%%02X", utf8.data[i]);
    }
    nk_buf_add_char(&text, '\0');
    if (!text.failed && !utf8.failed)
        nk_reply_header(req, "Content-Disposition", (const char *)nk_buf_front(&text));
    nk_buf_fini(&text);
    nk_buf_fini(&utf8);
}

static void add_headers(struct nk_req *req, const struct nk_op *op, const char *etag)
{
    char date[30];

    nk_clock_format_http((int64_t)op->entry.st.st_mtim.tv_sec * 1000, date);
    nk_reply_header(req, "ETag", etag);
    nk_reply_header(req, "Last-Modified", date);
    nk_reply_header(req, "Accept-Ranges", "bytes");
    nk_reply_header(req, "Cache-Control", "no-cache");
}

static void refuse(struct nk_req *req, int status, uint64_t size)
{
    struct nk_err err;
    char range[48];

    if (status == 412) {
        (void)nk_fail(&err, NK_PRECONDITION_FAILED, "the file is not the one that was asked for");
    } else {
        (void)snprintf(range, sizeof range, "bytes */%" PRIu64, size);
        nk_reply_header(req, "Content-Range", range);
        (void)nk_fail(&err, NK_RANGE_NOT_SATISFIABLE, "the file has only %" PRIu64 " bytes", size);
    }
    nk_req_fail(req, &err);
}

static int judge(const struct nk_req *req, const struct nk_range_file *file, uint64_t *from,
                 uint64_t *len)
{
    struct nk_range_ask ask = {
        .if_match = nk_req_header(req, "If-Match"),
        .if_unmodified_since = nk_req_header(req, "If-Unmodified-Since"),
        .if_none_match = nk_req_header(req, "If-None-Match"),
        .if_modified_since = nk_req_header(req, "If-Modified-Since"),
        .if_range = nk_req_header(req, "If-Range"),
        .range = nk_req_method(req) == NK_GET ? nk_req_header(req, "Range") : NULL,
    };

    return nk_range_judge(&ask, file, from, len);
}

/* The time of the last change stands in it too: the other one is set at will, and an archive that is
 * unpacked twice gives a new content of the same size the time and the inode of the old one. */
static void print_etag(const struct stat *st, char out[ETAG_MAX])
{
    (void)snprintf(out, ETAG_MAX, "\"%llx.%lx-%llx.%lx-%llx-%llx\"",
                   (unsigned long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
                   (unsigned long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec,
                   (unsigned long long)st->st_size, (unsigned long long)st->st_ino);
}

static void answer(struct nk_req *req, struct nk_op *op)
{
    const struct stat *st = &op->entry.st;
    const char *slash = strrchr(op->place.path, '/');
    struct nk_range_file file = {.mtime = st->st_mtim.tv_sec, .size = (uint64_t)st->st_size};
    uint64_t from = 0, len = 0;
    char etag[ETAG_MAX], range[80];
    int status;

    print_etag(st, etag);
    file.etag = etag;
    status = judge(req, &file, &from, &len);
    if (status == 412 || status == 416) {
        refuse(req, status, file.size);
        return;
    }
    add_headers(req, op, etag);
    if (status == 304) {
        nk_reply_empty(req, 304);
        return;
    }
    nk_reply_header(req, "X-Content-Type-Options", "nosniff");
    add_disposition(req, slash ? slash + 1 : op->place.path);
    if (status == 206) {
        (void)snprintf(range, sizeof range, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, from,
                       from + len - 1, file.size);
        nk_reply_header(req, "Content-Range", range);
    }
    nk_reply_file(req, status, "application/octet-stream", nk_take_fd(&op->fd), from, len);
}

int nk_api_file_read(struct nk_req *req, struct nk_err *err)
{
    struct nk_file_call *call;
    const char *path;
    size_t len;

    if (nk_file_call_path(req, "path", NULL, &path, &len, err) < 0)
        return -1;
    call = nk_file_call_new(req, err);
    if (!call)
        return -1;
    if (nk_file_call_set_path(call, path, len, err) < 0) {
        nk_file_call_free(call);
        return -1;
    }
    nk_file_call_start(call, nk_op_open, answer);
    return 0;
}
