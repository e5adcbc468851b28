/*
 * `nookd ls`: what is in a folder of the sandbox.
 */
#ifndef NK_CLI_CMD_LS_H
#define NK_CLI_CMD_LS_H

#include "cli/target.h"

extern const char nk_cmd_ls_help[];

int nk_cmd_ls(char **argv, const struct nk_cli_env *env);

#endif
