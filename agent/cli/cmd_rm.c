#include "cli/cmd_rm.h"

#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/verbs.h"

const char nk_cmd_rm_help[] =
    "usage: nookd rm [-r] [--socket PATH] PATH...\n"
    "\n"
    "Removes files, links and empty folders of the sandbox. A link is removed, not what it points\n"
    "to. Goes on after one that cannot be removed, and ends with 125 then.\n"
    "\n"
    "  -r, --recursive  folders with all that is in them\n"
    "  --socket PATH    the daemon's socket\n";

static int remove_one(const struct nk_cli_env *env, const char *socket, const char *path,
                      bool recursive)
{
    struct nk_buf target = {0};
    struct nk_client *c = NULL;
    struct nk_err err;
    int rc = -1;

    nk_buf_add_str(&target, "/v1/files?path=");
    nk_ask_escape(&target, path);
    nk_buf_add_str(&target, recursive ? "&recursive=true" : "");
    nk_buf_add_char(&target, '\0');
    if (target.failed)
        (void)nk_fail(&err, NK_OVERLOADED, "no memory");
    else if (nk_ask_open(env, socket, 0, &c, &err) == 0)
        rc = nk_ask_json(c, "DELETE", (const char *)nk_buf_front(&target), NULL, NULL, &err);
    nk_client_free(c);
    nk_buf_fini(&target);
    return rc < 0 ? nk_out_fail(&err) : 0;
}

int nk_cmd_rm(char **argv, const struct nk_cli_env *env)
{
    const char *socket = NULL;
    bool recursive = false;
    const struct nk_args_opt table[] = {
        {"--recursive", 'r', NK_ARGS_FLAG, &recursive},
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
        return nk_out_fail_msg("rm needs a path (--help shows how)");
    for (size_t i = 0; i < args.operand_count; i++) {
        rc = remove_one(env, socket, args.operand[i], recursive);
        status = rc ? rc : status;
    }
    return status;
}
