/*
 * `nookd health`: whether the daemon answers; an image's health check.
 */
#ifndef NK_CLI_CMD_HEALTH_H
#define NK_CLI_CMD_HEALTH_H

#include "cli/target.h"

extern const char nk_cmd_health_help[];

int nk_cmd_health(char **argv, const struct nk_cli_env *env);

#endif
