/*
 * `nookd call`: one raw call of the API.
 */
#ifndef NK_CLI_CMD_CALL_H
#define NK_CLI_CMD_CALL_H

#include "cli/target.h"

extern const char nk_cmd_call_help[];

int nk_cmd_call(char **argv, const struct nk_cli_env *env);

#endif
