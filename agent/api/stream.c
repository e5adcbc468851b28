/* POST /v1/exec/stream, /v1/code/stream and /v1/contexts/ID/code/stream: the output as Server-Sent
 * Events while it comes.
 *
 * The response begins when the command has started (before that, errors are plain ones) and ends
 * after exactly one closing event. The reader sets the pace: its watcher holds the command's output
 * back, so nothing is dropped. */
#include <stdlib.h>

#include "api/api.h"
#include "api/attachments.h"
#include "api/feed.h"
#include "api/handlers.h"
#include "api/starter.h"
#include "api/wire.h"
#include "http/request.h"

struct stream {
    struct nk_feed feed;
    struct nk_starter starter;
    struct nk_attachments attachments;
    unsigned users; /* the feed, and a start that is not through */
};

static void leave(struct stream *s)
{
    if (--s->users == 0)
        free(s);
}

static void on_released(struct nk_feed *f)
{
    leave(NK_CONTAINER_OF(f, struct stream, feed));
}

static void on_over(struct nk_feed *f, bool gone)
{
    struct stream *s = NK_CONTAINER_OF(f, struct stream, feed);

    if (gone)
        nk_starter_gone(&s->starter);
    nk_attachments_fini(&s->attachments);
    if (!nk_starter_drop(&s->starter))
        s->users++;
}

static void on_started(struct nk_starter *l, const struct nk_err *err)
{
    struct stream *s = NK_CONTAINER_OF(l, struct stream, starter);

    if (!s->feed.req)
        leave(s);
    else if (err)
        nk_req_fail(s->feed.req, err);
    else
        nk_attachments_started(&s->attachments);
}

/* A repeat under a key: the same stream again, from the log. It is not the pace of the command. */
static void on_joined(struct nk_starter *l, struct nk_process *p)
{
    struct stream *s = NK_CONTAINER_OF(l, struct stream, starter);

    nk_feed_join(&s->feed, p, 0);
}

static void write_result(struct nk_feed *f, struct nk_buf *out)
{
    nk_wire_sse_code_result(out, f->watcher.process);
}

static int run(struct nk_req *req, enum nk_exec_kind kind, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    struct stream *s = calloc(1, sizeof *s);

    if (!s)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    s->feed =
        (struct nk_feed){.holds = true, .opening = true, .over = on_over, .released = on_released};
    if (kind != NK_EXEC_STREAM)
        s->feed.write_closing = write_result;
    s->feed.shown.on = kind == NK_EXEC_CONTEXT_STREAM;
    s->starter = (struct nk_starter){.kind = kind,
                                     .watcher = nk_feed_watcher(&s->feed),
                                     .done = on_started,
                                     .joined = on_joined};
    s->users = 1;
    nk_feed_open(&s->feed, req, api->loop);
    if (!nk_req_json(req))
        return nk_attachments_begin(&s->attachments, &s->starter, req, err);
    return nk_starter_run(&s->starter, req, err);
}

int nk_api_exec_stream(struct nk_req *req, struct nk_err *err)
{
    return run(req, NK_EXEC_STREAM, err);
}

int nk_api_code_stream(struct nk_req *req, struct nk_err *err)
{
    return run(req, NK_EXEC_CODE_STREAM, err);
}

int nk_api_context_stream(struct nk_req *req, struct nk_err *err)
{
    return run(req, NK_EXEC_CONTEXT_STREAM, err);
}
