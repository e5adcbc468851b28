#include "cli/cmd_cp.h"

#include <string.h>

#include "cli/args.h"
#include "cli/copy.h"
#include "cli/out.h"

const char nk_cmd_cp_help[] =
    "usage: nookd cp [--socket PATH] SRC :DST    into the sandbox\n"
    "       nookd cp [--socket PATH] :SRC DST    out of it\n"
    "\n"
    "A path with a colon in front is one of the sandbox; \"-\" is standard input or output.\n"
    "Folders are copied as `cp -r` does: into DST where that is a folder, else as DST. A folder\n"
    "to \"-\" is a tar archive; \"-\" to a folder (or to a name that ends in a slash) is one too.\n"
    "A copied file appears when it is whole. Links are copied as links; sockets, devices and\n"
    "FIFOs in a folder are left out.\n"
    "\n"
    "Exit status: 0, or 1 when some entries of an archive were refused (they are named), or 125.\n"
    "\n"
    "example: nookd cp ./project :/workspace/project\n";

static const char *there(const char *path)
{
    return path[1] != '\0' ? path + 1 : ".";
}

static int run(struct nk_copy *copy, const char *from, const char *to)
{
    bool up = to[0] == ':';

    if (up == (from[0] == ':'))
        return nk_out_fail_msg("one of the two paths must be the sandbox's: with a colon in front");
    copy->local = up ? from : to;
    copy->remote = there(up ? to : from);
    if (copy->local[0] == '\0')
        return nk_out_fail_msg("an empty path");
    nk_progress_init(&copy->progress);
    return up ? nk_copy_up(copy) : nk_copy_down(copy);
}

int nk_cmd_cp(char **argv, const struct nk_cli_env *env)
{
    struct nk_copy copy = {.env = env};
    const struct nk_args_opt table[] = {{"--socket", 0, NK_ARGS_TEXT, &copy.socket}};
    struct nk_args args = {.opts = table, .count = NK_COUNT(table)};
    int status = nk_args_begin(&args, argv);

    if (status != 0)
        return status;
    if (args.operand_count != 2)
        return nk_out_fail_msg("cp needs a source and a destination (--help shows how)");
    return run(&copy, args.operand[0], args.operand[1]);
}
