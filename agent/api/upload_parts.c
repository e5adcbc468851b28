#include "api/upload_parts.h"

#include <string.h>
#include <strings.h>

#include "api/wire_files.h"
#include "http/request.h"

static void go_on(struct nk_parts *p);

static void finish(struct nk_parts *p, const struct nk_err *err)
{
    struct nk_err why;

    if (p->over)
        return;
    if (err)
        why = *err; /* it may lie in the upload */
    p->over = true;
    nk_holder_drop(&p->holder);
    nk_upload_drop(&p->upload);
    p->events->on_over(p, err ? &why : NULL);
    nk_req_pause_body(p->req, false); /* what is left of a refused body is read away */
}

static int judge(struct nk_parts *p, struct nk_err *err)
{
    uint64_t old = 0;
    bool replaces = nk_upload_replaces(p->upload, &old);
    struct nk_tally_file file;

    p->judged = true;
    nk_upload_file(p->upload, &file.dev, &file.ino);
    nk_holder_file(&p->holder, &file);
    nk_holder_credit(&p->holder, old);
    return nk_holder_take(&p->holder, 0, !replaces, err);
}

static void on_room(void *ctx)
{
    struct nk_parts *p = ctx;
    struct nk_err err;

    p->waiting = false;
    if (!p->judged && judge(p, &err) < 0)
        finish(p, &err);
    else
        go_on(p);
}

static void keep(struct nk_parts *p, const struct nk_entry *entry, bool created)
{
    uint64_t old = 0;

    (void)nk_upload_replaces(p->upload, &old);
    nk_holder_keep(&p->holder, (uint64_t)entry->st.st_size, created + nk_upload_made(p->upload),
                   created ? 0 : old);
}

static void on_uploaded(void *ctx, const struct nk_entry *entry, bool created,
                        const struct nk_err *err)
{
    struct nk_parts *p = ctx;

    if (err) {
        finish(p, err);
        return;
    }
    keep(p, entry, created);
    nk_json_out_open(&p->out, NULL, '{');
    nk_wire_files_entry(&p->out, entry);
    nk_json_out_close(&p->out, '}');
    nk_upload_drop(&p->upload);
    p->waiting = false;
    go_on(p);
}

/* Sub-folders are welcome, a way out of the folder is not. */
static int check_name(const char *name, size_t len, struct nk_err *err)
{
    if (len == 0 || name[0] == '/')
        return nk_fail(err, NK_BAD_PATH, "filename must be a relative path, not '%s'", name);
    for (const char *s = name; *s;) {
        size_t n = strcspn(s, "/");

        if (n == 2 && s[0] == '.' && s[1] == '.')
            return nk_fail(err, NK_BAD_PATH, "filename %s: leads out of its folder", name);
        s += n + (s[n] == '/');
    }
    return 0;
}

static int begin_file(struct nk_parts *p, struct nk_err *err)
{
    static const struct nk_upload_events events = {.on_room = on_room, .on_over = on_uploaded};
    struct nk_upload_config cfg = {.jobs = p->scope.jobs,
                                   .as = p->scope.as,
                                   .share = p->scope.share,
                                   .roots = p->scope.roots,
                                   .mode = NK_UPLOAD_KEEP_MODE,
                                   .size = -1,
                                   .events = &events,
                                   .ctx = p};
    struct nk_buf path = {0};
    int rc = check_name(p->parser.filename, p->parser.filename_len, err);

    if (rc < 0 || nk_quota_check(p->scope.quota, err) < 0)
        return -1;
    nk_holder_init(&p->holder, p->scope.quota);
    p->judged = false;
    nk_buf_add(&path, p->dir, p->dir_len);
    nk_buf_add_char(&path, '/');
    nk_buf_add(&path, p->parser.filename, p->parser.filename_len);
    if (path.failed) {
        rc = nk_fail(err, NK_OVERLOADED, "no memory for this upload");
    } else {
        cfg.path = (const char *)nk_buf_front(&path);
        cfg.path_len = nk_buf_left(&path);
        rc = nk_upload_new(&cfg, &p->upload, err);
    }
    nk_buf_fini(&path);
    p->waiting = rc == 0; /* until it is open */
    return rc;
}

static int begin_part(struct nk_parts *p, struct nk_err *err)
{
    int rc = p->events->on_part ? p->events->on_part(p, err) : 0;

    p->in_field = rc > 0;
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    if (p->parser.filename)
        return begin_file(p, err);
    return nk_fail(err, NK_BAD_REQUEST, "part %.100s has no filename",
                   p->parser.name ? p->parser.name : "");
}

static int take_data(struct nk_parts *p, struct nk_err *err)
{
    int rc;

    if (!p->in_field && nk_holder_take(&p->holder, p->parser.len, 0, err) < 0)
        return -1;
    if (!p->in_field) {
        p->waiting = !nk_upload_write(p->upload, p->parser.data, p->parser.len);
        return 0;
    }
    rc = p->events->on_field_data(p, p->parser.data, p->parser.len, err);
    p->waiting = rc > 0;
    return rc < 0 ? -1 : 0;
}

static int end_part(struct nk_parts *p, struct nk_err *err)
{
    if (p->in_field)
        return p->events->on_field_end(p, err);
    p->waiting = true;
    nk_upload_end(p->upload);
    return 0;
}

/* 1: there may be more, 0: the input is used up, -1 with err. */
static int step(struct nk_parts *p, const uint8_t **data, size_t *len, struct nk_err *err)
{
    switch (nk_multipart_next(&p->parser, data, len, err)) {
    case NK_MULTIPART_MORE:
        return 0;
    case NK_MULTIPART_PART:
        return begin_part(p, err) < 0 ? -1 : 1;
    case NK_MULTIPART_DATA:
        return take_data(p, err) < 0 ? -1 : 1;
    case NK_MULTIPART_PART_END:
        return end_part(p, err) < 0 ? -1 : 1;
    case NK_MULTIPART_END:
        p->complete = true;
        return 1;
    case NK_MULTIPART_FAIL:
        break;
    }
    return -1;
}

/* As far as it goes; *data and *len are moved. */
static void feed(struct nk_parts *p, const uint8_t **data, size_t *len)
{
    struct nk_err err;
    int rc = 1;

    while (!p->waiting && !p->over && rc > 0)
        rc = step(p, data, len, &err);
    if (rc < 0)
        finish(p, &err);
}

static void settle(struct nk_parts *p)
{
    struct nk_err err;

    if (p->over)
        return;
    nk_req_pause_body(p->req, p->waiting || nk_buf_left(&p->held) > 0);
    if (!p->ended || p->waiting || nk_buf_left(&p->held) > 0)
        return;
    if (p->complete) {
        finish(p, NULL);
        return;
    }
    (void)nk_fail(&err, NK_BAD_REQUEST, "the body ends before its last boundary");
    finish(p, &err);
}

static void go_on(struct nk_parts *p)
{
    const uint8_t *data = nk_buf_left(&p->held) > 0 ? nk_buf_front(&p->held) : NULL;
    size_t len = nk_buf_left(&p->held);

    feed(p, &data, &len);
    nk_buf_consume(&p->held, nk_buf_left(&p->held) - len);
    settle(p);
}

void nk_parts_resume(struct nk_parts *p)
{
    p->waiting = false;
    go_on(p);
}

void nk_parts_data(struct nk_parts *p, const void *data, size_t len)
{
    const uint8_t *at = data;
    struct nk_err err;

    if (p->over)
        return;
    if (nk_buf_left(&p->held) == 0)
        feed(p, &at, &len);
    nk_buf_add(&p->held, at, len);
    if (p->held.failed && !p->over) {
        (void)nk_fail(&err, NK_OVERLOADED, "no memory for this request");
        finish(p, &err);
    }
    settle(p);
}

void nk_parts_end(struct nk_parts *p)
{
    p->ended = true;
    settle(p);
}

static void on_known(struct nk_quota_ask *ask)
{
    nk_parts_resume(NK_CONTAINER_OF(ask, struct nk_parts, ask));
}

int nk_parts_init(struct nk_parts *p, struct nk_req *req, const struct nk_parts_events *events,
                  const char *dir, struct nk_err *err)
{
    const char *type = nk_req_header(req, "Content-Type");
    struct nk_multipart parser;

    if (!type || strncasecmp(type, "multipart/form-data", 19) != 0)
        return nk_fail(err, NK_UNSUPPORTED_MEDIA_TYPE,
                       "the body must be multipart/form-data (curl -F file=@NAME)");
    if (nk_multipart_init(&parser, type, err) < 0)
        return -1;
    *p = (struct nk_parts){.req = req,
                           .parser = parser,
                           .events = events,
                           .scope = nk_file_call_scope(req),
                           .dir = dir,
                           .dir_len = strlen(dir)};
    p->out.buf = &p->files;
    nk_json_out_open(&p->out, NULL, '[');
    p->ask.told = on_known;
    p->waiting = !nk_quota_know(p->scope.quota, &p->ask);
    return 0;
}

void nk_parts_fini(struct nk_parts *p)
{
    p->over = true;
    nk_quota_leave(&p->ask);
    nk_holder_drop(&p->holder);
    nk_upload_drop(&p->upload);
    nk_multipart_fini(&p->parser);
    nk_buf_fini(&p->held);
    nk_buf_fini(&p->files);
}
