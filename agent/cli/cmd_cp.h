/*
 * The verb `cp`: files and folders into the sandbox and out of it.
 */
#ifndef NK_CLI_CMD_CP_H
#define NK_CLI_CMD_CP_H

#include "cli/target.h"

extern const char nk_cmd_cp_help[];
int nk_cmd_cp(char **argv, const struct nk_cli_env *env);

#endif
