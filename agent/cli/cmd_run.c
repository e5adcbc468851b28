#include "cli/cmd_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_out.h"
#include "base/scope.h"
#include "base/utf8.h"
#include "cli/args.h"
#include "cli/exec_body.h"
#include "cli/exec_stream.h"
#include "cli/out.h"
#include "cli/run_result.h"

const char nk_cmd_run_help[] =
    "usage: nookd run [OPTIONS] LANG [FILE|-] [ARGS...]\n"
    "       nookd run [OPTIONS] --context ID [FILE|-]\n"
    "\n"
    "Runs code in the sandbox, from FILE or standard input, prints its output as it comes, then "
    "on\n"
    "standard error the files it changed, and ends with its exit status.\n"
    "\n"
    "  --outputs DIR      save the images it made below /output here\n"
    "  --cwd DIR          working directory\n"
    "  --env NAME=VALUE   one more variable; may be repeated\n"
    "  --timeout SECONDS  kill it after that time\n"
    "  --context ID       run it in this context, and print the value of a last expression\n"
    "  --socket PATH      the daemon's socket\n"
    "\n"
    "LANG is python, javascript, typescript, bash, sh, php, ruby, go, or one that the sandbox "
    "has.\n"
    "Exit status: the program's own, 128+N when signal N ended it; 125 when nookd itself failed,\n"
    "130 after Ctrl-C.\n"
    "\n"
    "example: echo 'print(6 * 7)' | nookd run python\n"
    "         nookd run --outputs plots python chart.py data.csv\n";

#define CONTEXT_MAX 64
#define CONTEXT_PATH "/v1/contexts/%s/code/stream"

struct run_opts {
    const char *outputs, *context, *cwd, *timeout, *socket;
    struct nk_args_list env;
};

static int read_all(int fd, const char *name, struct nk_buf *code, struct nk_err *err)
{
    for (;;) {
        uint8_t *room = nk_buf_reserve(code, 65536);
        ssize_t n = room ? read(fd, room, 65536) : -1;

        if (!room)
            return nk_fail_sys(err, ENOMEM, "cannot keep the code");
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return nk_fail_sys(err, errno, "cannot read %s", name);
        if (n == 0)
            return 0;
        nk_buf_commit(code, (size_t)n);
        if (nk_buf_left(code) > NK_EXEC_BODY_MAX)
            return nk_fail(err, NK_TOO_LARGE, "%s is longer than the %u bytes of a request", name,
                           NK_EXEC_BODY_MAX);
    }
}

static int read_code(const char *file, struct nk_buf *code, struct nk_err *err)
{
    bool std = !file || strcmp(file, "-") == 0;
    const char *name = std ? "standard input" : file;
    nk_auto_fd int fd = std ? -1 : open(file, O_RDONLY | O_CLOEXEC);

    if (!std && fd < 0)
        return nk_fail_sys(err, errno, "cannot open %s", file);
    if (read_all(std ? STDIN_FILENO : fd, name, code, err) < 0)
        return -1;
    if (nk_buf_left(code) > 0 && (!nk_utf8_valid(nk_buf_front(code), nk_buf_left(code)) ||
                                  memchr(nk_buf_front(code), '\0', nk_buf_left(code))))
        return nk_fail(err, NK_BAD_REQUEST, "%s is not text (UTF-8)", name);
    return 0;
}

static int add_args(struct nk_json_out *out, char **args, struct nk_err *err)
{
    nk_json_out_open(out, "args", '[');
    for (; *args; args++) {
        if (nk_exec_body_text(out, NULL, *args, err) < 0)
            return -1;
    }
    nk_json_out_close(out, ']');
    return 0;
}

static int finish(const struct run_opts *o, struct nk_json_out *out, struct nk_err *err)
{
    if (o->timeout && nk_exec_body_timeout(out, o->timeout, err) < 0)
        return -1;
    nk_json_out_close(out, '}');
    return out->buf->failed ? nk_fail_sys(err, ENOMEM, "cannot build the request") : 0;
}

/* operand: the language (not with a context), a file, the arguments. */
static int build(const struct run_opts *o, char **operand, const struct nk_buf *code,
                 struct nk_buf *buf, struct nk_err *err)
{
    struct nk_json_out out = {.buf = buf};

    nk_json_out_open(&out, NULL, '{');
    nk_json_out_strn(&out, "code", nk_buf_left(code) ? nk_buf_front(code) : (const uint8_t *)"",
                     nk_buf_left(code));
    if (o->context)
        return finish(o, &out, err);
    if (nk_exec_body_text(&out, "language", operand[0], err) < 0 ||
        nk_exec_body_env(&out, &o->env, err) < 0)
        return -1;
    if (operand[1] && operand[2] && add_args(&out, operand + 2, err) < 0)
        return -1;
    if (o->cwd && nk_exec_body_text(&out, "cwd", o->cwd, err) < 0)
        return -1;
    return finish(o, &out, err);
}

/* What belongs to the context is not for one run to choose. */
static int check_context(const struct run_opts *o, char **operand)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

    if (*o->context == '\0' || strlen(o->context) > CONTEXT_MAX ||
        o->context[strspn(o->context, allowed)] != '\0')
        return nk_out_fail_msg("--context must be the id of a context");
    if (o->cwd || o->env.count > 0)
        return nk_out_fail_msg("--context excludes --cwd and --env: they are the context's");
    if (*operand && operand[1])
        return nk_out_fail_msg("with --context there is one file, and no arguments");
    return 0;
}

static int run(struct run_opts *o, char **operand, const struct nk_cli_env *env)
{
    struct nk_buf code = {0}, request = {0};
    char path[sizeof CONTEXT_PATH + CONTEXT_MAX] = "/v1/code/stream";
    const struct nk_exec_stream stream = {.env = env,
                                          .socket = o->socket,
                                          .request = &request,
                                          .path = path,
                                          .closing = nk_run_result_tell,
                                          .ctx = o->outputs};
    struct nk_err err;
    int status;

    if (o->context) {
        status = check_context(o, operand);
        if (status != 0)
            return status;
        (void)snprintf(path, sizeof path, CONTEXT_PATH, o->context);
    } else if (!*operand) {
        return nk_out_fail_msg("no language given (--help shows how)");
    }
    if (read_code(o->context ? operand[0] : operand[1], &code, &err) < 0 ||
        build(o, operand, &code, &request, &err) < 0)
        status = nk_out_fail(&err);
    else
        status = nk_exec_stream_run(&stream);
    nk_buf_fini(&code);
    nk_buf_fini(&request);
    return status;
}

int nk_cmd_run(char **argv, const struct nk_cli_env *env)
{
    struct run_opts o = {0};
    const struct nk_args_opt table[] = {
        {"--outputs", 0, NK_ARGS_TEXT, &o.outputs}, {"--context", 0, NK_ARGS_TEXT, &o.context},
        {"--cwd", 0, NK_ARGS_TEXT, &o.cwd},         {"--env", 0, NK_ARGS_LIST, &o.env},
        {"--timeout", 0, NK_ARGS_TEXT, &o.timeout}, {"--socket", 0, NK_ARGS_TEXT, &o.socket},
    };
    struct nk_args args = {.opts = table, .count = NK_COUNT(table), .command = true};
    int status = nk_args_begin(&args, argv);

    if (status == 0)
        status = run(&o, args.operand, env);
    nk_args_list_fini(&o.env);
    return status;
}
