/*
 * `nookd kill`: send a signal to a process and all it started.
 */
#ifndef NK_CLI_CMD_KILL_H
#define NK_CLI_CMD_KILL_H

#include "cli/target.h"

extern const char nk_cmd_kill_help[];

int nk_cmd_kill(char **argv, const struct nk_cli_env *env);

#endif
