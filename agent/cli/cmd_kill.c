#include "cli/cmd_kill.h"

#include <string.h>

#include "base/json_out.h"
#include "base/utf8.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"

const char nk_cmd_kill_help[] =
    "usage: nookd kill [-s SIGNAL] ID\n"
    "\n"
    "Sends a signal to a process (by id or name) and to all that it started.\n"
    "\n"
    "  -s, --signal SIGNAL  TERM (without this option), SIGTERM or 15\n"
    "  --socket PATH        the daemon's socket\n";

static int post(struct nk_client *c, const char *id, const char *signal, struct nk_err *err)
{
    struct nk_buf path = {0}, body = {0};
    struct nk_json_out out = {.buf = &body};
    int rc;

    nk_buf_add_str(&path, "/v1/processes/");
    nk_ask_escape(&path, id);
    nk_buf_add_str(&path, "/kill");
    nk_buf_add_char(&path, '\0');
    nk_json_out_open(&out, NULL, '{');
    nk_json_out_str(&out, "signal", signal);
    nk_json_out_close(&out, '}');
    rc = nk_ask_json(c, "POST", path.failed ? "" : (const char *)nk_buf_front(&path), &body, NULL,
                     err);
    nk_buf_fini(&path);
    nk_buf_fini(&body);
    return rc;
}

static int run(const struct nk_cli_env *env, const char *socket, const char *id, const char *signal)
{
    struct nk_client *c = NULL;
    struct nk_err err;
    int rc;

    if (!nk_utf8_valid(signal, strlen(signal)))
        return nk_out_fail_msg("a signal's name is not UTF-8");
    if (nk_ask_open(env, socket, NK_ASK_TIMEOUT_MS, &c, &err) < 0)
        return nk_out_fail(&err);
    rc = post(c, id, signal, &err);
    nk_client_free(c);
    return rc < 0 ? nk_out_fail(&err) : 0;
}

int nk_cmd_kill(char **argv, const struct nk_cli_env *env)
{
    const char *socket = NULL, *signal = "TERM";
    const struct nk_args_opt table[] = {
        {"--signal", 's', NK_ARGS_TEXT, &signal},
        {"--socket", 0, NK_ARGS_TEXT, &socket},
    };
    struct nk_args args = {.opts = table, .count = NK_COUNT(table)};
    int status = nk_args_begin(&args, argv);

    if (status != 0)
        return status;
    if (args.operand_count != 1)
        return nk_out_fail_msg("kill needs one id or name (--help shows how)");
    return run(env, socket, args.operand[0], signal);
}
