#include "cli/cmd_mkdir.h"

#include <string.h>

#include "base/json_out.h"
#include "base/utf8.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/verbs.h"

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

static int make_one(const struct nk_cli_env *env, const char *socket, const char *path,
                    const char *mode)
{
    struct nk_buf body = {0};
    struct nk_client *c = NULL;
    struct nk_err err;
    int rc = -1;

    write_body(&body, path, mode);
    if (nk_ask_open(env, socket, NK_ASK_TIMEOUT_MS, &c, &err) == 0)
        rc = nk_ask_json(c, "POST", "/v1/files/mkdir", &body, NULL, &err);
    nk_client_free(c);
    nk_buf_fini(&body);
    return rc < 0 ? nk_out_fail(&err) : 0;
}

int nk_cmd_mkdir(char **argv, const struct nk_cli_env *env)
{
    const char *socket = NULL, *mode = NULL;
    const struct nk_args_opt table[] = {
        {"--mode", 'm', NK_ARGS_TEXT, &mode},
        {"--socket", 0, NK_ARGS_TEXT, &socket},
    };
    struct nk_args args = {.opts = table, .count = NK_COUNT(table)};
    struct nk_err err;
    int status = 0;
    int rc = nk_args_read(&args, argv, &err);

    if (rc > 0)
        return NK_VERBS_HELP;
    if (rc < 0)
        return nk_out_fail(&err);
    if (args.operand_count == 0)
        return nk_out_fail_msg("mkdir needs a path (--help shows how)");
    if (mode && !nk_utf8_valid(mode, strlen(mode)))
        return nk_out_fail_msg("a mode is not UTF-8");
    for (size_t i = 0; i < args.operand_count; i++) {
        rc = make_one(env, socket, args.operand[i], mode);
        status = rc ? rc : status;
    }
    return status;
}
