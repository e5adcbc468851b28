#include "cli/cmd_call.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"

#define PIECE 65536
#define NOT_2XX 1

const char nk_cmd_call_help[] =
    "usage: nookd call METHOD PATH [--data JSON|@FILE|-] [--socket PATH]\n"
    "\n"
    "Makes one call of the API and prints the body of the answer as it comes.\n"
    "--data is the body of the request: the text itself, a file's bytes, or standard input.\n"
    "\n"
    "Exit status: 0 for an answer of 2xx, 1 for any other (its body is printed all the same),\n"
    "125 when there was no answer or it broke off.\n"
    "\n"
    "example: nookd call POST /v1/exec --data '{\"command\":\"id\"}'\n";

struct call {
    const char *method, *path;
    const char *data; /* of --data, or NULL */
    int file;         /* what it names; -1: it is the body itself */
};

static int send_file(struct nk_client *c, int fd, struct nk_err *err)
{
    char piece[PIECE];

    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return nk_fail_sys(err, errno, "cannot read the data");
        if (n == 0)
            return nk_client_end_body(c, err);
        if (nk_client_send_body(c, piece, (size_t)n, err) < 0)
            return -1;
    }
}

static int send_call(struct nk_client *c, const struct call *call, struct nk_err *err)
{
    struct nk_client_request req = {.method = call->method, .path = call->path};

    if (call->file >= 0) {
        req.body_len = -1;
    } else if (call->data) {
        req.body = call->data;
        req.body_len = (int64_t)strlen(call->data);
    }
    if (nk_client_send(c, &req, err) < 0)
        return -1;
    return call->file >= 0 ? send_file(c, call->file, err) : 0;
}

static int print_body(struct nk_client *c, const struct nk_interrupt *wait)
{
    struct nk_buf piece = {0};
    struct nk_err err;
    bool end = false;
    int status = 0;

    while (!end && status == 0) {
        if (!nk_client_pending(c))
            status = nk_interrupt_wait(wait, nk_client_fd(c), POLLIN, -1);
        if (status == 0 && nk_client_read_body(c, &piece, &end, &err) < 0)
            status = nk_out_fail(&err);
        /* Also what came before it broke off is printed. */
        if (nk_buf_left(&piece) > 0 && (status == 0 || status == NK_OUT_FAILED)) {
            int rc = nk_out_write(wait, STDOUT_FILENO, nk_buf_front(&piece), nk_buf_left(&piece));

            status = rc != 0 ? rc : status;
        }
        nk_buf_consume(&piece, nk_buf_left(&piece));
    }
    nk_buf_fini(&piece);
    return status < 0 ? nk_out_fail_msg("cannot wait: %s", strerror(-status)) : status;
}

/* Without a deadline for the answer: a raw call may be one that runs a command for hours. */
static int finish(struct nk_client *c, const struct nk_interrupt *wait)
{
    int http;
    struct nk_err err;
    int status = nk_interrupt_wait(wait, nk_client_fd(c), POLLIN, -1);

    if (status != 0)
        return status > 0 ? status : nk_out_fail_msg("cannot wait: %s", strerror(-status));
    if (nk_client_read_head(c, &http, &err) < 0)
        return nk_out_fail(&err);
    status = print_body(c, wait);
    if (status != 0)
        return status;
    return http >= 200 && http < 300 ? 0 : NOT_2XX;
}

static int make(const struct call *call, const struct nk_cli_env *env, const char *socket)
{
    struct nk_interrupt wait = {.fd = -1};
    struct nk_client *c = NULL;
    struct nk_err err;
    int status;

    if (nk_ask_open(env, socket, NK_ASK_TIMEOUT_MS, &c, &err) < 0)
        return nk_out_fail(&err);
    if (send_call(c, call, &err) < 0)
        status = nk_out_fail(&err);
    else if (nk_interrupt_open(&wait) < 0)
        status = nk_out_fail_msg("cannot watch for signals");
    else
        status = finish(c, &wait);
    nk_client_free(c);
    nk_interrupt_close(&wait);
    return status;
}

static int run(char **operand, const char *data, const char *socket, const struct nk_cli_env *env)
{
    struct call call = {.method = operand[0], .path = operand[1], .data = data, .file = -1};
    nk_auto_fd int file = -1;

    if (data && strcmp(data, "-") == 0) {
        call.file = STDIN_FILENO;
    } else if (data && data[0] == '@') {
        file = open(data + 1, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (file < 0)
            return nk_out_fail_msg("cannot open %s: %s", data + 1, strerror(errno));
        call.file = file;
    }
    return make(&call, env, socket);
}

int nk_cmd_call(char **argv, const struct nk_cli_env *env)
{
    const char *socket = NULL, *data = NULL;
    const struct nk_args_opt table[] = {
        {"--data", 0, NK_ARGS_TEXT, &data},
        {"--socket", 0, NK_ARGS_TEXT, &socket},
    };
    struct nk_args args = {.opts = table, .count = NK_COUNT(table)};
    int status = nk_args_begin(&args, argv);

    if (status != 0)
        return status;
    if (args.operand_count != 2)
        return nk_out_fail_msg("call needs a method and a path (--help shows how)");
    return run(args.operand, data, socket, env);
}
