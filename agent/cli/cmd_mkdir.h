/*
 * `nookd mkdir`: make folders in the sandbox.
 */
#ifndef NK_CLI_CMD_MKDIR_H
#define NK_CLI_CMD_MKDIR_H

#include "cli/target.h"

extern const char nk_cmd_mkdir_help[];

int nk_cmd_mkdir(char **argv, const struct nk_cli_env *env);

#endif
