/*
 * `nookd rm`: remove files and folders of the sandbox.
 */
#ifndef NK_CLI_CMD_RM_H
#define NK_CLI_CMD_RM_H

#include "cli/target.h"

extern const char nk_cmd_rm_help[];

int nk_cmd_rm(char **argv, const struct nk_cli_env *env);

#endif
