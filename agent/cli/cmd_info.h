/*
 * `nookd info`: the state of the sandbox, as a table or as the API tells it.
 */
#ifndef NK_CLI_CMD_INFO_H
#define NK_CLI_CMD_INFO_H

#include "cli/target.h"

extern const char nk_cmd_info_help[];

int nk_cmd_info(char **argv, const struct nk_cli_env *env);

#endif
