#include "cli/cmd_attach.h"

#include <string.h>

#include "base/attr.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/talk.h"

#define LEAVE_KEY 0x1d /* Ctrl-] */

const char nk_cmd_attach_help[] =
    "usage: nookd attach [OPTIONS] ID\n"
    "\n"
    "Prints what a process (by id or name) has written and writes, and passes standard input on "
    "to\n"
    "it; the end of standard input is not passed on. Ends with the exit status of the process, or\n"
    "leaves it running: by Ctrl-] where it has a terminal, else by Ctrl-C.\n"
    "\n"
    "  --since OFFSET     from this offset (without it, all that is held)\n"
    "  --socket PATH      the daemon's socket\n";

static int run(const struct nk_cli_env *env, const char *socket, const char *id, const char *since)
{
    struct nk_buf path = {0};
    int status;

    nk_buf_add_str(&path, "/v1/processes/");
    nk_ask_escape(&path, id);
    nk_buf_add_str(&path, "/ws?binary=true");
    if (since) {
        nk_buf_add_str(&path, "&since=");
        nk_ask_escape(&path, since);
    }
    nk_buf_add_char(&path, '\0');
    if (path.failed)
        status = nk_out_fail_msg("out of memory");
    else
        status = nk_talk_run(&(struct nk_talk){.env = env,
                                               .socket = socket,
                                               .path = (const char *)nk_buf_front(&path),
                                               .input = true,
                                               .leave_key = LEAVE_KEY});
    nk_buf_fini(&path);
    return status;
}

int nk_cmd_attach(char **argv, const struct nk_cli_env *env)
{
    const char *socket = NULL, *since = NULL;
    const struct nk_args_opt table[] = {
        {"--since", 0, NK_ARGS_TEXT, &since},
        {"--socket", 0, NK_ARGS_TEXT, &socket},
    };
    struct nk_args args = {.opts = table, .count = NK_COUNT(table)};
    int status = nk_args_begin(&args, argv);

    if (status != 0)
        return status;
    if (args.operand_count != 1)
        return nk_out_fail_msg("attach takes one process, by id or name");
    return run(env, socket, args.operand[0], since);
}
