#include "api/attachments.h"

#include <string.h>

#include "api/api.h"
#include "api/starter.h"
#include "api/whose.h"
#include "base/json.h"
#include "base/secret.h"
#include "http/request.h"
#include "process/process.h"
#include "process/stdin.h"

#define FOLDER "files"

static struct nk_attachments *of_parts(struct nk_parts *p)
{
    return NK_CONTAINER_OF(p, struct nk_attachments, parts);
}

static struct nk_process *process_of(const struct nk_attachments *a)
{
    return a->starter->watcher->process;
}

/* As far as the program reads. A program that has closed its input has the rest read away. */
static void pump(struct nk_attachments *a)
{
    size_t left = nk_buf_left(&a->input);
    struct nk_stdin_piece piece = {.data = left > 0 ? nk_buf_front(&a->input) : NULL,
                                   .len = left,
                                   .offset = NK_STDIN_NEXT,
                                   .close = a->closing};
    struct nk_err err;

    if (!process_of(a) || (left == 0 && !a->closing))
        return;
    if (!a->deaf)
        a->deaf = nk_stdin_push(process_of(a), &piece, &err) < 0;
    nk_buf_consume(&a->input, a->deaf ? left : left - piece.len);
}

static void on_event(struct nk_watcher *w, enum nk_proc_event ev, const struct nk_err *err)
{
    struct nk_attachments *a = NK_CONTAINER_OF(w, struct nk_attachments, watcher);

    (void)err;
    if (ev != NK_PROC_EV_INPUT && ev != NK_PROC_EV_EXITED && ev != NK_PROC_EV_FAILED)
        return;
    a->deaf |= ev != NK_PROC_EV_INPUT;
    pump(a);
    if (a->parts.waiting && nk_buf_left(&a->input) == 0)
        nk_parts_resume(&a->parts);
}

void nk_attachments_started(struct nk_attachments *a)
{
    if (!a->used || !process_of(a) || a->watcher.process)
        return;
    a->watcher.on_event = on_event;
    nk_watcher_attach(&a->watcher, process_of(a));
    pump(a);
    if (a->parts.waiting && nk_buf_left(&a->input) == 0)
        nk_parts_resume(&a->parts);
}

static int start(struct nk_attachments *a, struct nk_err *err)
{
    a->started = true;
    if (nk_starter_run_late(a->starter, a->parts.req, a->object, err) < 0)
        return -1;
    if (process_of(a)) {
        a->watcher.on_event = on_event;
        nk_watcher_attach(&a->watcher, process_of(a));
    }
    return 0;
}

static bool is_named(const struct nk_parts *p, const char *name)
{
    return p->parser.name && strcmp(p->parser.name, name) == 0;
}

static int on_part(struct nk_parts *p, struct nk_err *err)
{
    struct nk_attachments *a = of_parts(p);

    if (is_named(p, "request") != (p->parser.parts == 1))
        return nk_fail(err, NK_BAD_REQUEST, "the first part, and no other, is named request");
    if (a->started)
        return nk_fail(err, NK_BAD_REQUEST, "nothing may follow the part stdin");
    a->in_request = p->parser.parts == 1;
    if (a->in_request)
        return 1;
    if (!is_named(p, "stdin"))
        return 0;
    a->starter->feeds = true;
    return start(a, err) < 0 ? -1 : 1;
}

static int on_field_data(struct nk_parts *p, const void *data, size_t len, struct nk_err *err)
{
    struct nk_attachments *a = of_parts(p);

    if (a->in_request) {
        nk_buf_add(&a->text, data, len);
        if (a->text.failed)
            return nk_fail(err, NK_TOO_LARGE, "the part request is larger than %zu bytes",
                           a->text.max);
        return 0;
    }
    if (a->deaf)
        return 0;
    nk_buf_add(&a->input, data, len);
    if (a->input.failed)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    pump(a);
    return nk_buf_left(&a->input) > 0;
}

/* What is wrong with the request is told before the files are read. */
static int read_request(struct nk_attachments *a, struct nk_err *err)
{
    const void *text = nk_buf_left(&a->text) > 0 ? (const void *)nk_buf_front(&a->text) : "";
    struct nk_api_settings set;
    struct nk_exec_request ask;

    if (nk_json_parse(text, nk_buf_left(&a->text), &a->object, err) < 0)
        return -1;
    if (nk_json_type(a->object) != NK_JSON_OBJECT)
        return nk_fail(err, NK_BAD_REQUEST, "the part request must be an object, not %s",
                       nk_json_type_name(a->object));
    if (nk_whose_settings(a->parts.req, &set, err) < 0 ||
        nk_exec_request_read(a->object, a->starter->kind, &set, nk_req_arena(a->parts.req), &ask,
                             err) < 0)
        return -1;
    nk_exec_request_fini(&ask);
    return 0;
}

static int on_field_end(struct nk_parts *p, struct nk_err *err)
{
    struct nk_attachments *a = of_parts(p);

    if (a->in_request)
        return read_request(a, err);
    a->closing = true;
    pump(a);
    return 0;
}

/* Half an input must not look like a whole one: a command that has it is ended. */
static void give_up(struct nk_attachments *a, const struct nk_err *err)
{
    struct nk_process *p = process_of(a);

    nk_keys_drop(&a->starter->use, err);
    if (!p)
        nk_req_fail(a->parts.req, err);
    else if (p->state != NK_PROC_EXITED)
        nk_process_end(p, NK_REASON_CLIENT_GONE);
}

static void on_over(struct nk_parts *p, const struct nk_err *err)
{
    struct nk_attachments *a = of_parts(p);
    struct nk_err own;

    if (err) {
        give_up(a, err);
        return;
    }
    if (a->started)
        return;
    if (!a->object)
        (void)nk_fail(&own, NK_BAD_REQUEST, "the part request is missing");
    else if (start(a, &own) == 0)
        return;
    nk_keys_drop(&a->starter->use, &own);
    nk_req_fail(p->req, &own);
}

/* A repeat under a key is only fingerprinted: what it would bring is there, or it is a conflict. */
static int on_data(struct nk_req *req, const void *data, size_t len, struct nk_err *err)
{
    struct nk_attachments *a = of_parts(nk_req_ctx(req));

    (void)err;
    if (a->keyed)
        nk_sha256_add(&a->hash, data, len);
    if (!a->starter->repeat)
        nk_parts_data(&a->parts, data, len);
    return 0;
}

static int on_end(struct nk_req *req, struct nk_err *err)
{
    struct nk_attachments *a = of_parts(nk_req_ctx(req));
    uint8_t digest[32];

    (void)err;
    if (a->keyed) {
        nk_sha256_end(&a->hash, digest);
        nk_keys_digest(&a->starter->use, digest);
    }
    if (!a->starter->repeat)
        nk_parts_end(&a->parts);
    return 0;
}

int nk_attachments_begin(struct nk_attachments *a, struct nk_starter *starter, struct nk_req *req,
                         struct nk_err *err)
{
    static const struct nk_body_sink sink = {.on_data = on_data, .on_end = on_end};
    static const struct nk_parts_events events = {.on_part = on_part,
                                                  .on_field_data = on_field_data,
                                                  .on_field_end = on_field_end,
                                                  .on_over = on_over};
    struct nk_api *api = nk_req_app(req);

    a->starter = starter;
    if (nk_starter_claim(starter, req, err) < 0)
        return -1;
    if (nk_parts_init(&a->parts, req, &events, FOLDER, err) < 0) {
        nk_keys_leave(&starter->use);
        return -1;
    }
    a->keyed = starter->use.key != NULL;
    nk_sha256_init(&a->hash);
    a->text.max = (size_t)api->set.max_body;
    a->used = true;
    nk_req_set_ctx(req, &a->parts);
    nk_req_set_body_sink(req, &sink);
    return 0;
}

void nk_attachments_fini(struct nk_attachments *a)
{
    if (!a->used)
        return;
    a->used = false;
    nk_watcher_detach(&a->watcher);
    nk_parts_fini(&a->parts);
    nk_buf_fini(&a->text);
    nk_buf_fini(&a->input);
    nk_json_free(a->object);
    a->object = NULL;
}
