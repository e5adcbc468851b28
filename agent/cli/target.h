/*
 * Which daemon a verb talks to: the option, else the URL of the environment, else the socket.
 *
 * The caller reads the environment and hands its values in. Owns the token read from its file.
 */
#ifndef NK_CLI_TARGET_H
#define NK_CLI_TARGET_H

#include "base/err.h"
#include "http/client.h"

#define NK_TARGET_SOCKET "/run/nookd/api.sock"

struct nk_cli_env {         /* borrowed: outlives the verb; NULL: not set */
    const char *socket;     /* NOOKD_SOCKET */
    const char *url;        /* NOOKD_URL */
    const char *token_file; /* NOOKD_TOKEN_FILE */
};

struct nk_target {
    struct nk_client_target client;
    char *token; /* owned, or NULL */
};

/* `socket` is the value of --socket, or NULL. A token is read only for a URL: on the socket none is
 * needed. */
int nk_target_init(struct nk_target *t, const struct nk_cli_env *env, const char *socket,
                   struct nk_err *err);
void nk_target_fini(struct nk_target *t); /* wipes the token */

#endif
