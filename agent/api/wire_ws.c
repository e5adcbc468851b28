#include "api/wire_ws.h"

#include "api/problem.h"
#include "api/wire.h"
#include "code/outcome.h"
#include "code/run.h"
#include "http/ws.h"
#include "process/process.h"
#include "process/stdin.h"

struct message {
    struct nk_json_out o;
    size_t at;
};

static struct message begin(struct nk_buf *out, const char *type)
{
    struct message m = {.o = {.buf = out}, .at = nk_ws_begin(out)};

    nk_json_out_open(&m.o, NULL, '{');
    nk_json_out_str(&m.o, "type", type);
    return m;
}

static void end(struct message *m)
{
    nk_json_out_close(&m->o, '}');
    nk_ws_end(m->o.buf, m->at, NK_WS_TEXT);
}

void nk_wire_ws_started(struct nk_buf *out, const struct nk_process *p, uint64_t offset)
{
    struct message m = begin(out, "started");

    nk_json_out_str(&m.o, "id", p->id);
    nk_json_out_i64(&m.o, "pid", p->pid);
    nk_json_out_u64(&m.o, "offset", offset);
    end(&m);
}

void nk_wire_ws_attached(struct nk_buf *out, const struct nk_process *p)
{
    struct message m = begin(out, "attached");

    nk_json_out_str(&m.o, "id", p->id);
    nk_json_out_str(&m.o, "status", p->state == NK_PROC_EXITED ? "exited" : "running");
    nk_json_out_bool(&m.o, "tty", p->tty);
    nk_json_out_u64(&m.o, "cols", p->cols);
    nk_json_out_u64(&m.o, "rows", p->rows);
    nk_json_out_u64(&m.o, "log_start", p->log.start);
    nk_json_out_u64(&m.o, "log_end", nk_process_stream_end(p));
    nk_json_out_u64(&m.o, "stdin_offset", nk_stdin_offset(p));
    end(&m);
}

void nk_wire_ws_output(struct nk_buf *out, enum nk_cut kind, const struct nk_cutter_piece *piece)
{
    struct message m = begin(out, piece->stream == NK_STDERR ? "stderr" : "stdout");

    nk_wire_output(&m.o, kind, piece);
    nk_json_out_u64(&m.o, "offset", piece->to);
    end(&m);
}

void nk_wire_ws_bytes(struct nk_buf *out, const struct nk_cutter_piece *piece)
{
    uint8_t head[9] = {(uint8_t)piece->stream};
    size_t at = nk_ws_begin(out);

    for (unsigned i = 0; i < 8; i++)
        head[1 + i] = (uint8_t)(piece->to >> (8 * (7 - i)));
    nk_buf_add(out, head, sizeof head);
    nk_buf_add(out, piece->data, piece->len);
    nk_ws_end(out, at, NK_WS_BINARY);
}

void nk_wire_ws_display(struct nk_buf *out, const struct nk_display *d)
{
    struct message m = begin(out, "display");

    nk_outcome_write(&m.o, "data", &d->json, NK_WIRE_BUNDLE_MAX);
    nk_json_out_u64(&m.o, "offset", d->offset);
    end(&m);
}

void nk_wire_ws_gap(struct nk_buf *out, uint64_t from, uint64_t to)
{
    struct message m = begin(out, "gap");

    nk_json_out_u64(&m.o, "from", from);
    nk_json_out_u64(&m.o, "to", to);
    end(&m);
}

void nk_wire_ws_ack(struct nk_buf *out, uint64_t offset)
{
    struct message m = begin(out, "stdin_ack");

    nk_json_out_u64(&m.o, "offset", offset);
    end(&m);
}

void nk_wire_ws_stdin_error(struct nk_buf *out, enum nk_code code)
{
    struct message m = begin(out, "stdin_error");

    nk_json_out_str(&m.o, "code", nk_problem_name(code));
    end(&m);
}

void nk_wire_ws_exit(struct nk_buf *out, struct nk_process *p)
{
    const struct nk_run *run = nk_run_of(p);
    bool code = run && nk_run_language(run);
    struct message m = begin(out, code ? "result" : "exit");

    if (code)
        nk_wire_code_result(&m.o, p, 0);
    else
        nk_wire_result(&m.o, p, false);
    end(&m);
}

void nk_wire_ws_error(struct nk_buf *out, const struct nk_err *err)
{
    struct message m = begin(out, "error");

    nk_problem_members(&m.o, err);
    end(&m);
}
