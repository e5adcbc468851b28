/* GET /v1/processes/{id}/logs and …/follow: what the log holds, and what comes after. */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/feed.h"
#include "api/handlers.h"
#include "api/read.h"
#include "api/wire.h"
#include "base/json_out.h"
#include "http/reply.h"
#include "http/request.h"
#include "process/outlog.h"

enum which { BOTH = 0, ONLY_STDOUT = NK_STDOUT, ONLY_STDERR = NK_STDERR };

struct ask {
    uint64_t from;
    enum which stream;
    bool raw;
};

static int read_stream(const struct nk_req *req, enum which *out, struct nk_err *err)
{
    const char *text = nk_req_query(req, "stream");

    if (!text)
        return 0;
    if (strcmp(text, "stdout") != 0 && strcmp(text, "stderr") != 0)
        return nk_fail(err, NK_BAD_REQUEST, "stream must be stdout or stderr, not %s", text);
    *out = strcmp(text, "stdout") == 0 ? ONLY_STDOUT : ONLY_STDERR;
    return 0;
}

/* Where the newest `tail` bytes of the asked streams begin. */
static uint64_t tail_start(const struct nk_outlog *log, enum which stream, uint64_t tail)
{
    struct nk_outlog_run run;
    uint64_t total = 0, seen = 0;

    for (uint64_t pos = log->start; nk_outlog_at(log, pos, SIZE_MAX, &run); pos += run.len)
        if (stream == BOTH || (enum which)run.stream == stream)
            total += run.len;
    for (uint64_t pos = log->start; nk_outlog_at(log, pos, SIZE_MAX, &run); pos += run.len) {
        if (stream != BOTH && (enum which)run.stream != stream)
            continue;
        if (total - seen <= tail)
            return pos;
        if (total - seen - run.len < tail)
            return pos + (total - seen - tail);
        seen += run.len;
    }
    return log->end;
}

static int read_ask(const struct nk_req *req, const struct nk_process *p, struct ask *out,
                    struct nk_err *err)
{
    bool since = nk_req_query(req, "since") != NULL;
    uint64_t tail = 0;

    *out = (struct ask){.from = p->log.start};
    if (nk_req_query_bool(req, "raw", &out->raw, err) < 0 ||
        read_stream(req, &out->stream, err) < 0 ||
        nk_req_query_u64(req, "since", UINT64_MAX, &out->from, err) < 0 ||
        nk_req_query_u64(req, "tail", UINT64_MAX, &tail, err) < 0)
        return -1;
    if (nk_req_query(req, "tail")) {
        if (since)
            return nk_fail(err, NK_BAD_REQUEST, "since and tail exclude each other");
        out->from = tail_start(&p->log, out->stream, tail);
    }
    return nk_read_offset(p, out->from, err);
}

static void collect(const struct nk_outlog *log, uint64_t from, enum which stream,
                    struct nk_buf *out)
{
    struct nk_outlog_run run;

    for (uint64_t pos = from; nk_outlog_at(log, pos, SIZE_MAX, &run); pos += run.len)
        if (stream == BOTH || (enum which)run.stream == stream)
            nk_buf_add(out, run.data, run.len);
}

static void reply_raw(struct nk_req *req, const struct nk_process *p, const struct ask *ask)
{
    struct nk_buf body = {0};
    char offset[24];

    collect(&p->log, ask->from, ask->stream, &body);
    (void)snprintf(offset, sizeof offset, "%llu", (unsigned long long)p->log.end);
    nk_reply_header(req, "X-Nook-Offset", offset);
    nk_reply_header(req, "X-Content-Type-Options", "nosniff");
    nk_reply_take(req, 200, "application/octet-stream", &body);
    nk_buf_fini(&body);
}

static void write_stream(struct nk_json_out *o, const struct nk_process *p, const struct ask *ask,
                         enum which stream)
{
    struct nk_buf bytes = {0};

    if (ask->stream == BOTH || ask->stream == stream)
        collect(&p->log, ask->from, stream, &bytes);
    o->buf->failed |= bytes.failed;
    nk_json_out_bytes(o, stream == ONLY_STDOUT ? "stdout" : "stderr", nk_buf_front(&bytes),
                      nk_buf_left(&bytes));
    nk_buf_fini(&bytes);
}

int nk_api_process_logs(struct nk_req *req, struct nk_err *err)
{
    struct nk_process *p = nk_read_process(req, err);
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};
    struct ask ask;

    if (!p || read_ask(req, p, &ask, err) < 0)
        return -1;
    if (ask.raw) {
        reply_raw(req, p, &ask);
        return 0;
    }
    nk_json_out_open(&o, NULL, '{');
    write_stream(&o, p, &ask, ONLY_STDOUT);
    write_stream(&o, p, &ask, ONLY_STDERR);
    nk_json_out_u64(&o, "log_start", p->log.start);
    nk_json_out_u64(&o, "log_end", p->log.end);
    nk_json_out_close(&o, '}');
    nk_wire_reply(req, 200, &body);
    return 0;
}

static void free_feed(struct nk_feed *f)
{
    free(f);
}

/* `since`, else Last-Event-ID (which a browser sends by itself when it comes back), else all. */
static int read_since(const struct nk_req *req, const struct nk_process *p, uint64_t *out,
                      struct nk_err *err)
{
    const char *last = nk_req_header(req, "Last-Event-ID");
    char *end;

    *out = p->log.start;
    if (nk_req_query(req, "since"))
        return nk_req_query_u64(req, "since", UINT64_MAX, out, err) < 0
                   ? -1
                   : nk_read_offset(p, *out, err);
    if (!last)
        return 0;
    *out = strtoull(last, &end, 10);
    if (*last < '0' || *last > '9' || *end != '\0')
        return nk_fail(err, NK_BAD_REQUEST, "Last-Event-ID must be an offset");
    return nk_read_offset(p, *out, err);
}

int nk_api_process_follow(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    struct nk_process *p = nk_read_process(req, err);
    struct nk_feed *f;
    uint64_t pos;

    if (!p || read_since(req, p, &pos, err) < 0)
        return -1;
    f = calloc(1, sizeof *f);
    if (!f)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    f->released = free_feed;
    nk_feed_open(f, req, api->loop);
    nk_feed_join(f, p, pos);
    return 0;
}
