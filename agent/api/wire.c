#include "api/wire.h"

#include <string.h>

#include "api/problem.h"
#include "code/outcome.h"
#include "code/run.h"
#include "http/reply.h"
#include "http/sse.h"
#include "process/process.h"

static void output(struct nk_json_out *o, const char *key, struct nk_capture *c)
{
    size_t len = 0;
    const uint8_t *data = nk_capture_bytes(c, &len);

    nk_json_out_bytes(o, key, data, len);
}

static void how_it_ended(struct nk_json_out *o, const struct nk_process *p)
{
    bool ended = p->state == NK_PROC_EXITED;

    if (ended)
        nk_json_out_i64(o, "exit_code", nk_process_exit_code(p));
    else
        nk_json_out_null(o, "exit_code");
    nk_json_out_str(o, "signal", ended ? nk_process_signal_name(p) : NULL);
    nk_json_out_bool(o, "timed_out", p->timed_out);
    nk_json_out_bool(o, "killed", p->killed);
    nk_json_out_str(o, "reason", ended ? nk_reason_name(p->reason) : NULL);
}

static void changes(struct nk_json_out *o, const char *key, const struct nk_run *run)
{
    const struct nk_change *list = NULL;
    size_t count = run ? nk_run_changes(run, &list) : 0;

    nk_json_out_open(o, key, '[');
    for (size_t i = 0; i < count; i++) {
        const char *path = nk_run_path(run, &list[i]);

        nk_json_out_open(o, NULL, '{');
        nk_json_out_bytes(o, "path", path, strlen(path));
        nk_json_out_u64(o, "size", list[i].size);
        nk_json_out_close(o, '}');
    }
    nk_json_out_close(o, ']');
}

static void images(struct nk_json_out *o, const struct nk_run *run, bool with_data)
{
    const struct nk_image *list = NULL;
    size_t count = run ? nk_run_images(run, &list) : 0;

    nk_json_out_open(o, "outputs", '[');
    for (size_t i = 0; i < count; i++) {
        const char *path = nk_run_path(run, list[i].change);

        nk_json_out_open(o, NULL, '{');
        nk_json_out_bytes(o, "path", path, strlen(path));
        nk_json_out_str(o, "mime", list[i].mime);
        nk_json_out_u64(o, "size", list[i].size);
        if (with_data && list[i].data)
            nk_json_out_base64(o, "data_base64", list[i].data, (size_t)list[i].size);
        else
            nk_json_out_null(o, "data_base64");
        nk_json_out_close(o, '}');
    }
    nk_json_out_close(o, ']');
}

static void result(struct nk_json_out *o, struct nk_process *p, bool with_output,
                   const struct nk_run *files_of)
{
    bool captured = with_output && p->captures;

    nk_json_out_str(o, "id", p->id);
    how_it_ended(o, p);
    if (captured) {
        output(o, "stdout", &p->captures[0]);
        output(o, "stderr", &p->captures[1]);
    }
    nk_json_out_u64(o, "stdout_size", p->sizes[NK_STDOUT]);
    nk_json_out_u64(o, "stderr_size", p->sizes[NK_STDERR]);
    nk_json_out_bool(o, "stdout_truncated", captured && nk_capture_truncated(&p->captures[0]));
    nk_json_out_bool(o, "stderr_truncated", captured && nk_capture_truncated(&p->captures[1]));
    nk_json_out_u64(o, "duration_ms", nk_process_duration_ms(p));
    changes(o, "files", files_of);
}

void nk_wire_result(struct nk_json_out *o, struct nk_process *p, bool with_output)
{
    const struct nk_run *run = nk_run_of(p);

    result(o, p, with_output, run && !nk_run_language(run) ? run : NULL);
}

/* What was shown is told once: on the way, or with the whole result. */
static void outcome(struct nk_json_out *o, const struct nk_outcome *out, unsigned with)
{
    size_t max = with & NK_WIRE_IMAGES ? SIZE_MAX : NK_WIRE_BUNDLE_MAX;

    nk_json_out_u64(o, "execution_count", out->count);
    nk_outcome_write(o, "result", &out->result, max);
    nk_outcome_write(o, "error", &out->error, SIZE_MAX);
    nk_json_out_bool(o, "context_reset", out->reset);
    if (!(with & NK_WIRE_OUTPUT))
        return;
    nk_json_out_open(o, "displays", '[');
    for (size_t i = 0; i < out->displays; i++)
        nk_outcome_write(o, NULL, &out->display[i].json, SIZE_MAX);
    nk_json_out_close(o, ']');
}

void nk_wire_code_result(struct nk_json_out *o, struct nk_process *p, unsigned with)
{
    const struct nk_run *run = nk_run_of(p);

    result(o, p, with & NK_WIRE_OUTPUT, NULL);
    nk_json_out_str(o, "language", run ? nk_run_language(run) : NULL);
    changes(o, "files_changed", run);
    images(o, run, with & NK_WIRE_IMAGES);
    if (run && nk_run_outcome(run))
        outcome(o, nk_run_outcome(run), with);
}

static void command(struct nk_json_out *o, const struct nk_process *p)
{
    if (p->shell) {
        nk_json_out_bytes(o, "command", p->argv[2], strlen(p->argv[2]));
        return;
    }
    nk_json_out_open(o, "command", '[');
    for (char **arg = p->argv; *arg; arg++)
        nk_json_out_str(o, NULL, *arg);
    nk_json_out_close(o, ']');
}

void nk_wire_process(struct nk_json_out *o, const struct nk_process *p, const uint16_t *ports,
                     size_t port_count)
{
    nk_json_out_str(o, "id", p->id);
    nk_json_out_str(o, "name", p->name);
    command(o, p);
    nk_json_out_i64(o, "pid", p->pid);
    nk_json_out_str(o, "status", p->state == NK_PROC_EXITED ? "exited" : "running");
    nk_json_out_bool(o, "tree", p->tree);
    how_it_ended(o, p);
    nk_json_out_time(o, "started_at", p->started_wall_ms);
    nk_json_out_time(o, "ended_at", p->ended_wall_ms);
    nk_json_out_str(o, "cwd", p->cwd);
    nk_json_out_str(o, "user", p->user);
    nk_json_out_bool(o, "tty", p->tty);
    nk_json_out_u64(o, "stdout_size", p->sizes[NK_STDOUT]);
    nk_json_out_u64(o, "stderr_size", p->sizes[NK_STDERR]);
    nk_json_out_u64(o, "log_start", p->log.start);
    nk_json_out_u64(o, "log_end", p->log.end);
    nk_json_out_open(o, "ports", '[');
    for (size_t i = 0; i < port_count; i++)
        nk_json_out_u64(o, NULL, ports[i]);
    nk_json_out_close(o, ']');
}

void nk_wire_output(struct nk_json_out *o, enum nk_cut kind, const struct nk_cutter_piece *piece)
{
    if (kind == NK_CUT_TEXT)
        nk_json_out_strn(o, "text", piece->data, piece->len);
    else
        nk_json_out_base64(o, "base64", piece->data, piece->len);
}

static struct nk_json_out begin(struct nk_buf *out, const char *event, uint64_t offset)
{
    struct nk_json_out o = {.buf = out};

    nk_sse_begin(out, event, offset);
    nk_json_out_open(&o, NULL, '{');
    return o;
}

static void end(struct nk_json_out *o)
{
    nk_json_out_close(o, '}');
    nk_sse_end(o->buf);
}

void nk_wire_sse_started(struct nk_buf *out, const struct nk_process *p, uint64_t offset)
{
    struct nk_json_out o = begin(out, "started", offset);

    nk_json_out_str(&o, "id", p->id);
    nk_json_out_i64(&o, "pid", p->pid);
    nk_json_out_u64(&o, "offset", offset);
    end(&o);
}

void nk_wire_sse_output(struct nk_buf *out, enum nk_cut kind, const struct nk_cutter_piece *piece)
{
    const char *event = piece->stream == NK_STDERR ? "stderr" : "stdout";
    struct nk_json_out o = begin(out, event, piece->to);

    nk_wire_output(&o, kind, piece);
    end(&o);
}

void nk_wire_sse_display(struct nk_buf *out, const struct nk_display *d)
{
    struct nk_json_out o = {.buf = out};

    nk_sse_begin(out, "display", d->offset);
    nk_outcome_write(&o, NULL, &d->json, SIZE_MAX);
    nk_sse_end(out);
}

void nk_wire_sse_gap(struct nk_buf *out, uint64_t from, uint64_t to)
{
    struct nk_json_out o = begin(out, "gap", to);

    nk_json_out_u64(&o, "from", from);
    nk_json_out_u64(&o, "to", to);
    end(&o);
}

void nk_wire_sse_exit(struct nk_buf *out, struct nk_process *p)
{
    struct nk_json_out o = begin(out, "exit", p->end_offset);

    nk_wire_result(&o, p, false);
    end(&o);
}

void nk_wire_sse_code_result(struct nk_buf *out, struct nk_process *p)
{
    struct nk_json_out o = begin(out, "result", p->end_offset);

    nk_wire_code_result(&o, p, NK_WIRE_IMAGES);
    end(&o);
}

void nk_wire_sse_error(struct nk_buf *out, uint64_t offset, const struct nk_err *err)
{
    struct nk_json_out o = begin(out, "error", offset);

    nk_problem_members(&o, err);
    end(&o);
}

void nk_wire_reply(struct nk_req *req, int status, struct nk_buf *body)
{
    nk_reply_take(req, status, "application/json", body);
    nk_buf_fini(body);
}

void nk_wire_reply_process(struct nk_req *req, int status, const struct nk_process *p)
{
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};

    nk_json_out_open(&o, NULL, '{');
    nk_wire_process(&o, p, NULL, 0);
    nk_json_out_close(&o, '}');
    nk_wire_reply(req, status, &body);
}
