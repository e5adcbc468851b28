/*
 * `nookd attach`: watch a process, and type to it, as one of several.
 */
#ifndef NK_CLI_CMD_ATTACH_H
#define NK_CLI_CMD_ATTACH_H

#include "cli/target.h"

extern const char nk_cmd_attach_help[];

int nk_cmd_attach(char **argv, const struct nk_cli_env *env);

#endif
