#include "cli/cmd_proxy.h"

#include <unistd.h>

#include "base/attr.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/relay.h"
#include "cli/verbs.h"

const char nk_cmd_proxy_help[] =
    "usage: nookd proxy [--socket PATH]\n"
    "\n"
    "Standard input and output become one connection to the API: what a control plane runs by pod\n"
    "exec to speak HTTP and WebSocket without any open port. Bytes pass as they are, so over\n"
    "NOOKD_URL the requests carry their own token. The end of standard input shuts the sending "
    "side\n"
    "alone; answers still come.\n"
    "\n"
    "Exit status: 0 at the end of the connection, 125 where there was none or it broke off, 141 "
    "when\n"
    "nobody reads standard output any more.\n"
    "\n"
    "example: printf 'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: "
    "close\\r\\n\\r\\n' |\n"
    "             runc exec -i BOX nookd proxy\n";

int nk_cmd_proxy(char **argv, const struct nk_cli_env *env)
{
    const char *socket = NULL;
    const struct nk_args_opt table[] = {{"--socket", 0, NK_ARGS_TEXT, &socket}};
    struct nk_args args = {.opts = table, .count = NK_COUNT(table)};
    struct nk_client *client = NULL;
    struct nk_err err;
    int rc = nk_args_read(&args, argv, &err);

    if (rc > 0)
        return NK_VERBS_HELP;
    if (rc < 0)
        return nk_out_fail(&err);
    if (args.operand_count > 0)
        return nk_out_fail_msg("proxy takes no operands (--help shows how)");
    if (nk_ask_open(env, socket, NK_ASK_TIMEOUT_MS, &client, &err) < 0)
        return nk_out_fail(&err);
    rc = nk_relay_run(STDIN_FILENO, STDOUT_FILENO, nk_client_fd(client));
    nk_client_free(client);
    return rc;
}
