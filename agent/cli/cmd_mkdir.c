#include "cli/cmd_mkdir.h"

#include <string.h>

#include "base/json_out.h"
#include "base/utf8.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"

const char nk_cmd_mkdir_help[] =
    "usage: nookd mkdir [-m MODE] [--socket PATH] PATH...\n"
    "\n"
    "Makes folders in the sandbox, and their parents; content with those that are there.\n"
    "\n"
    "  -m, --mode MODE  permission bits, octal (755)\n"
    "  --socket PATH    the daemon's socket\n";

static void write_body(struct nk_buf *body, const char *path, const char *mode)
{
    struct nk_json_out out = {.buf = body};

    nk_json_out_open(&out, NULL, '{');
    if (nk_utf8_valid(path, strlen(path)))
        nk_json_out_str(&out, "path", path);
    else
        nk_json_out_base64(&out, "path_base64", path, strlen(path));
    if (mode)
        nk_json_out_str(&out, "mode", mode);
    nk_json_out_close(&out, '}');
}

struct making {
    const struct nk_cli_env *env;
    const char *socket, *mode;
};

static int make_one(const void *ctx, const char *path)
{
    const struct making *m = ctx;
    struct nk_buf body = {0};
    struct nk_client *c = NULL;
    struct nk_err err;
    int rc = -1;

    write_body(&body, path, m->mode);
    if (nk_ask_open(m->env, m->socket, NK_ASK_TIMEOUT_MS, &c, &err) == 0)
        rc = nk_ask_json(c, "POST", "/v1/files/mkdir", &body, NULL, &err);
    nk_client_free(c);
    nk_buf_fini(&body);
    return rc < 0 ? nk_out_fail(&err) : 0;
}

int nk_cmd_mkdir(char **argv, const struct nk_cli_env *env)
{
    struct making m = {.env = env};
    const struct nk_args_opt table[] = {
        {"--mode", 'm', NK_ARGS_TEXT, &m.mode},
        {"--socket", 0, NK_ARGS_TEXT, &m.socket},
    };
    struct nk_args args = {.opts = table, .count = NK_COUNT(table)};
    int status = nk_args_begin(&args, argv);

    if (status != 0)
        return status;
    if (args.operand_count == 0)
        return nk_out_fail_msg("mkdir needs a path (--help shows how)");
    if (m.mode && !nk_utf8_valid(m.mode, strlen(m.mode)))
        return nk_out_fail_msg("a mode is not UTF-8");
    return nk_args_each(&args, make_one, &m);
}
