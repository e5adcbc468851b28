/*
 * What a value must look like, and which options exclude each other. Private to config.
 *
 * Pure functions; they look at nothing outside their arguments.
 */
#ifndef NK_CONFIG_CHECK_H
#define NK_CONFIG_CHECK_H

#include <stdbool.h>

#include "config.h"

bool nk_config_check_path(const char *text);    /* absolute, without "..", short enough */
bool nk_config_check_listen(const char *text);  /* "127.0.0.1:80", "[::1]:80" */
bool nk_config_check_origin(const char *text);  /* "https://host[:port]" */
bool nk_config_check_host(const char *text);    /* a name without a port */
bool nk_config_check_user(const char *text);    /* "name", "1000", "1000:1000" */
bool nk_config_check_id(const char *text);      /* letters, digits, "_.-", at most 64 */
bool nk_config_check_network(const char *text); /* "all", "none", "host:port,…" */
bool nk_config_check_env(const char *text);     /* NAME=VALUE */
bool nk_config_check_seccomp(const char *text); /* "default", "off", a path */
bool nk_config_check_map(const char *text);     /* "TERM:INT", "15:0" */
bool nk_config_check_fd(const char *text);      /* 3 or more */

/* "TERM", "SIGTERM" or "15"; -1: none of these. */
int nk_config_check_signal(const char *text, size_t len);

/* What no single value can tell. NK_BAD_REQUEST naming the options. */
int nk_config_check_all(const struct nk_config *c, struct nk_err *err);

#endif
