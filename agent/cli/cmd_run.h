/*
 * `nookd run`: code in the sandbox.
 */
#ifndef NK_CLI_CMD_RUN_H
#define NK_CLI_CMD_RUN_H

#include "cli/target.h"

extern const char nk_cmd_run_help[];

int nk_cmd_run(char **argv, const struct nk_cli_env *env);

#endif
