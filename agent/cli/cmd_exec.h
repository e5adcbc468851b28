/*
 * `nookd exec`: run a command in the sandbox and end as it ended.
 */
#ifndef NK_CLI_CMD_EXEC_H
#define NK_CLI_CMD_EXEC_H

#include "cli/target.h"

extern const char nk_cmd_exec_help[];

int nk_cmd_exec(char **argv, const struct nk_cli_env *env);

#endif
