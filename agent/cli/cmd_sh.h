/*
 * `nookd sh`: a shell in the sandbox, on a terminal.
 */
#ifndef NK_CLI_CMD_SH_H
#define NK_CLI_CMD_SH_H

#include "cli/target.h"

extern const char nk_cmd_sh_help[];

int nk_cmd_sh(char **argv, const struct nk_cli_env *env);

#endif
