/*
 * `nookd ps`: list the processes of the sandbox.
 */
#ifndef NK_CLI_CMD_PS_H
#define NK_CLI_CMD_PS_H

#include "cli/target.h"

extern const char nk_cmd_ps_help[];

int nk_cmd_ps(char **argv, const struct nk_cli_env *env);

#endif
