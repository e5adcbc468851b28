#include "cli/cmd_exec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_out.h"
#include "cli/args.h"
#include "cli/exec_body.h"
#include "cli/exec_stream.h"
#include "cli/out.h"
#include "cli/talk.h"
#include "cli/term.h"

const char nk_cmd_exec_help[] =
    "usage: nookd exec [OPTIONS] [--] COMMAND [ARGS...]\n"
    "\n"
    "Runs COMMAND in the sandbox, prints its output as it comes, and ends with its exit status.\n"
    "\n"
    "  -i                 pass standard input on, and its end\n"
    "  -t                 on a terminal of its own; -it makes it yours\n"
    "  --cwd DIR          working directory\n"
    "  --env NAME=VALUE   one more variable; may be repeated\n"
    "  --timeout SECONDS  kill it after that time\n"
    "  --detach           print its id once it has started and leave it running\n"
    "  --socket PATH      the daemon's socket\n"
    "\n"
    "Exit status: the command's own, 128+N when signal N ended it; 126 when it cannot be run,\n"
    "127 when it is not found, 125 when nookd itself failed, 130 after Ctrl-C.\n"
    "\n"
    "example: nookd exec --cwd /workspace -- sh -c 'ls -l; id'\n"
    "         nookd exec -it -- python3\n";

struct exec_opts {
    bool input, tty, detach;
    const char *cwd, *timeout, *socket;
    struct nk_args_list env;
};

static int add_command(struct nk_json_out *out, char **operand, struct nk_err *err)
{
    nk_json_out_open(out, "command", '[');
    for (; *operand; operand++) {
        if (nk_exec_body_text(out, NULL, *operand, err) < 0)
            return -1;
    }
    nk_json_out_close(out, ']');
    return 0;
}

/* How many bytes of input fit beside what the request holds already. */
static size_t input_room(const struct nk_json_out *out)
{
    size_t used = nk_buf_left(out->buf) + sizeof ",\"stdin_base64\":\"\"}";

    return used < NK_EXEC_BODY_MAX ? (NK_EXEC_BODY_MAX - used) / 4 * 3 : 0;
}

static int read_input(struct nk_buf *in, size_t max, struct nk_err *err)
{
    for (;;) {
        uint8_t *room = nk_buf_reserve(in, 65536);
        ssize_t n;

        if (!room)
            return nk_fail_sys(err, ENOMEM, "cannot keep standard input");
        n = read(STDIN_FILENO, room, 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return nk_fail_sys(err, errno, "cannot read standard input");
        if (n == 0)
            return 0;
        nk_buf_commit(in, (size_t)n);
        if (nk_buf_left(in) > max)
            return nk_fail(err, NK_TOO_LARGE,
                           "standard input is longer than the %zu bytes that fit into a request",
                           max);
    }
}

static int add_input(struct nk_json_out *out, struct nk_err *err)
{
    struct nk_buf in = {0};
    int rc;

    if (isatty(STDIN_FILENO))
        return nk_fail(err, NK_NOT_SUPPORTED,
                       "-i with --detach takes a file or a pipe, not a terminal");
    rc = read_input(&in, input_room(out), err);
    if (rc == 0)
        nk_json_out_base64(out, "stdin_base64", nk_buf_front(&in), nk_buf_left(&in));
    nk_buf_fini(&in);
    return rc;
}

/* Whether it is talked to while it runs; else its request holds all that it gets. */
static bool is_session(const struct exec_opts *o)
{
    return o->tty || (o->input && !o->detach);
}

static void add_session(struct nk_json_out *out, const struct exec_opts *o)
{
    unsigned cols, rows;

    nk_json_out_str(out, "type", "start");
    nk_json_out_bool(out, "binary", true);
    if (!o->tty)
        return;
    nk_json_out_bool(out, "tty", true);
    if (!nk_term_size(&cols, &rows))
        return;
    nk_json_out_u64(out, "cols", cols);
    nk_json_out_u64(out, "rows", rows);
}

static int build(const struct exec_opts *o, char **operand, struct nk_buf *buf, struct nk_err *err)
{
    struct nk_json_out out = {.buf = buf};

    nk_json_out_open(&out, NULL, '{');
    if (is_session(o))
        add_session(&out, o);
    if (add_command(&out, operand, err) < 0 || nk_exec_body_env(&out, &o->env, err) < 0)
        return -1;
    if (o->cwd && nk_exec_body_text(&out, "cwd", o->cwd, err) < 0)
        return -1;
    if (o->timeout && nk_exec_body_timeout(&out, o->timeout, err) < 0)
        return -1;
    if (o->detach)
        nk_json_out_bool(&out, "detach", true);
    if (o->input && !is_session(o) && add_input(&out, err) < 0)
        return -1;
    nk_json_out_close(&out, '}');
    return buf->failed ? nk_fail_sys(err, ENOMEM, "cannot build the request") : 0;
}

static int send(const struct exec_opts *o, const struct nk_buf *request,
                const struct nk_cli_env *env)
{
    const struct nk_exec_stream stream = {
        .env = env, .socket = o->socket, .request = request, .detach = o->detach};
    const struct nk_talk talk = {.env = env,
                                 .socket = o->socket,
                                 .path = "/v1/exec/ws",
                                 .start = request,
                                 .input = o->input,
                                 .end_input = true,
                                 .tty = o->tty,
                                 .detach = o->detach};

    return is_session(o) ? nk_talk_run(&talk) : nk_exec_stream_run(&stream);
}

static int run(const struct exec_opts *o, char **operand, const struct nk_cli_env *env)
{
    struct nk_buf request = {0};
    struct nk_err err;
    int status;

    if (!*operand)
        return nk_out_fail_msg("no command given (--help shows how)");
    if (build(o, operand, &request, &err) < 0)
        status = nk_out_fail(&err);
    else
        status = send(o, &request, env);
    nk_buf_fini(&request);
    return status;
}

int nk_cmd_exec(char **argv, const struct nk_cli_env *env)
{
    struct exec_opts o = {0};
    const struct nk_args_opt table[] = {
        {"--interactive", 'i', NK_ARGS_FLAG, &o.input},
        {"--tty", 't', NK_ARGS_FLAG, &o.tty},
        {"--cwd", 0, NK_ARGS_TEXT, &o.cwd},
        {"--env", 0, NK_ARGS_LIST, &o.env},
        {"--timeout", 0, NK_ARGS_TEXT, &o.timeout},
        {"--detach", 0, NK_ARGS_FLAG, &o.detach},
        {"--socket", 0, NK_ARGS_TEXT, &o.socket},
    };
    struct nk_args args = {.opts = table, .count = NK_COUNT(table), .command = true};
    int status = nk_args_begin(&args, argv);

    if (status == 0)
        status = run(&o, args.operand, env);
    nk_args_list_fini(&o.env);
    return status;
}
