#include "cli/cmd_health.h"

#include <string.h>

#include "base/json.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/verbs.h"

#define HEALTH_TIMEOUT_MS 5000
#define UNHEALTHY 1

const char nk_cmd_health_help[] =
    "usage: nookd health [--socket PATH]\n"
    "\n"
    "Prints one line; exit status 0 when the daemon answers that it is well, else 1.\n";

static int tell(const struct nk_json *root)
{
    const struct nk_json *uptime = nk_json_get(root, "uptime_ms");
    struct nk_buf line = {0};
    int rc;

    nk_out_plain(&line, nk_ask_text(root, "status", "?"));
    nk_buf_add_str(&line, " version ");
    nk_out_plain(&line, nk_ask_text(root, "version", "?"));
    nk_buf_add_fmt(&line, " up %.0f s\n", uptime ? nk_json_num(uptime) / 1000 : 0);
    rc = nk_out_buf(&line);
    nk_buf_fini(&line);
    return rc == 0 && strcmp(nk_ask_text(root, "status", "?"), "ok") == 0 ? 0 : UNHEALTHY;
}

static int ask(const struct nk_cli_env *env, const char *socket, struct nk_json **out,
               struct nk_err *err)
{
    struct nk_client *c = NULL;
    int rc;

    if (nk_ask_open(env, socket, HEALTH_TIMEOUT_MS, &c, err) < 0)
        return -1;
    rc = nk_ask_json(c, "GET", "/healthz", NULL, out, err);
    nk_client_free(c);
    return rc;
}

static int check(const struct nk_cli_env *env, const char *socket)
{
    struct nk_json *root = NULL;
    struct nk_err err;
    int status = UNHEALTHY;

    if (ask(env, socket, &root, &err) < 0)
        (void)nk_out_fail(&err);
    else if (!root || nk_json_type(root) != NK_JSON_OBJECT)
        (void)nk_out_fail_msg("the server's answer is not an object");
    else
        status = tell(root);
    nk_json_free(root);
    return status;
}

int nk_cmd_health(char **argv, const struct nk_cli_env *env)
{
    const char *socket = NULL;
    const struct nk_args_opt table[] = {{"--socket", 0, NK_ARGS_TEXT, &socket}};
    struct nk_args args = {.opts = table, .count = NK_COUNT(table)};
    struct nk_err err;
    int rc = nk_args_read(&args, argv, &err);

    if (rc > 0)
        return NK_VERBS_HELP;
    if (rc == 0 && args.operand_count > 0)
        rc = nk_fail(&err, NK_BAD_REQUEST, "health takes no operands");
    if (rc < 0) {
        (void)nk_out_fail(&err);
        return UNHEALTHY;
    }
    return check(env, socket);
}
