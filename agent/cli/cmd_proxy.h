/* nookd proxy: standard input and output become one connection to the API. */
#ifndef NK_CLI_CMD_PROXY_H
#define NK_CLI_CMD_PROXY_H

#include "cli/target.h"

extern const char nk_cmd_proxy_help[];

int nk_cmd_proxy(char **argv, const struct nk_cli_env *env);

#endif
