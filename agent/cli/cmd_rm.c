#include "cli/cmd_rm.h"

#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"

const char nk_cmd_rm_help[] =
    "usage: nookd rm [-r] [--socket PATH] PATH...\n"
    "\n"
    "Removes files, links and empty folders of the sandbox. A link is removed, not what it points\n"
    "to. Goes on after one that cannot be removed, and ends with 125 then.\n"
    "\n"
    "  -r, --recursive  folders with all that is in them\n"
    "  --socket PATH    the daemon's socket\n";

struct removal {
    const struct nk_cli_env *env;
    const char *socket;
    bool recursive;
};

static int remove_one(const void *ctx, const char *path)
{
    const struct removal *r = ctx;
    struct nk_buf target = {0};
    struct nk_client *c = NULL;
    struct nk_err err;
    int rc = -1;

    nk_buf_add_str(&target, "/v1/files?path=");
    nk_ask_escape(&target, path);
    nk_buf_add_str(&target, r->recursive ? "&recursive=true" : "");
    nk_buf_add_char(&target, '\0');
    if (target.failed)
        (void)nk_fail(&err, NK_OVERLOADED, "no memory");
    else if (nk_ask_open(r->env, r->socket, 0, &c, &err) == 0)
        rc = nk_ask_json(c, "DELETE", (const char *)nk_buf_front(&target), NULL, NULL, &err);
    nk_client_free(c);
    nk_buf_fini(&target);
    return rc < 0 ? nk_out_fail(&err) : 0;
}

int nk_cmd_rm(char **argv, const struct nk_cli_env *env)
{
    struct removal r = {.env = env};
    const struct nk_args_opt table[] = {
        {"--recursive", 'r', NK_ARGS_FLAG, &r.recursive},
        {"--socket", 0, NK_ARGS_TEXT, &r.socket},
    };
    struct nk_args args = {.opts = table, .count = NK_COUNT(table)};
    int status = nk_args_begin(&args, argv);

    if (status != 0)
        return status;
    if (args.operand_count == 0)
        return nk_out_fail_msg("rm needs a path (--help shows how)");
    return nk_args_each(&args, remove_one, &r);
}
