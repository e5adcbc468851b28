/*
 * `nookd logs`: print what a process wrote, and follow it.
 */
#ifndef NK_CLI_CMD_LOGS_H
#define NK_CLI_CMD_LOGS_H

#include "cli/target.h"

extern const char nk_cmd_logs_help[];

int nk_cmd_logs(char **argv, const struct nk_cli_env *env);

#endif
