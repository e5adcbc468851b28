#include "cli/cmd_sh.h"

#include <unistd.h>

#include "base/attr.h"
#include "base/json_out.h"
#include "cli/args.h"
#include "cli/out.h"
#include "cli/talk.h"
#include "cli/term.h"

const char nk_cmd_sh_help[] =
    "usage: nookd sh [OPTIONS]\n"
    "\n"
    "A shell in the sandbox: bash where it is there, else sh. On a terminal, unless standard input "
    "is\n"
    "none; then it runs what it reads. Ends with the shell's exit status.\n"
    "\n"
    "  --socket PATH      the daemon's socket\n";

static void build(struct nk_buf *buf, bool tty)
{
    struct nk_json_out out = {.buf = buf};
    unsigned cols, rows;

    nk_json_out_open(&out, NULL, '{');
    nk_json_out_str(&out, "type", "start");
    nk_json_out_bool(&out, "binary", true);
    nk_json_out_bool(&out, "tty", tty);
    nk_json_out_str(&out, "command", "command -v bash >/dev/null && exec bash; exec sh");
    if (tty && nk_term_size(&cols, &rows)) {
        nk_json_out_u64(&out, "cols", cols);
        nk_json_out_u64(&out, "rows", rows);
    }
    nk_json_out_close(&out, '}');
}

int nk_cmd_sh(char **argv, const struct nk_cli_env *env)
{
    const char *socket = NULL;
    const struct nk_args_opt table[] = {{"--socket", 0, NK_ARGS_TEXT, &socket}};
    struct nk_args args = {.opts = table, .count = NK_COUNT(table)};
    bool tty = isatty(STDIN_FILENO);
    struct nk_buf start = {0};
    int status = nk_args_begin(&args, argv);

    if (status != 0)
        return status;
    if (args.operand_count > 0)
        return nk_out_fail_msg("sh takes no operands (nookd exec runs a command)");
    build(&start, tty);
    status = nk_talk_run(&(struct nk_talk){.env = env,
                                           .socket = socket,
                                           .path = "/v1/exec/ws",
                                           .start = &start,
                                           .input = true,
                                           .end_input = true,
                                           .tty = tty});
    nk_buf_fini(&start);
    return status;
}
