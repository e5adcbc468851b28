/*
 * What the start needs to know before the loop turns: user, roots, environment, token.
 *
 * Blocking; called once by app.c. Results are owned by the caller.
 */
#ifndef NK_APP_SETUP_H
#define NK_APP_SETUP_H

#include "base/err.h"
#include "base/secret.h"
#include "config.h"
#include "process/userdb.h"

/* Whom commands run as: --user; else as root `sandbox`, else 1000:1000; else our own ids. */
int nk_app_setup_user(const struct nk_config *cfg, struct nk_user *out, struct nk_err *err);

/* Whom PROGRAM runs as: --program-user, else `user`. */
int nk_app_setup_program_user(const struct nk_config *cfg, const struct nk_user *user,
                              struct nk_user *out, struct nk_err *err);

/* Missing writable roots are made, owned by the user, where we are root. */
int nk_app_setup_roots(const struct nk_config *cfg, const struct nk_user *user, struct nk_err *err);

/* The base environment of commands: passed names, the user's own, --env. NULL: no memory. One
 * allocation for the list, one for each string; freed by nk_app_setup_free_env. */
char **nk_app_setup_env(const struct nk_config *cfg, const struct nk_user *user);
void nk_app_setup_free_env(char **env);

/* Reads the token, or makes one where only loopback listens and none was given. A token that the
 * user of commands could read is refused, unless that is our own uid. */
int nk_app_setup_token(const struct nk_config *cfg, const struct nk_user *user,
                       struct nk_secret *out, struct nk_err *err);

/* The binary, the options' file and the folders above them are nobody else's to change. */
bool nk_app_setup_has_profile(const struct nk_config *cfg); /* --seccomp FILE */
int nk_app_setup_guard(const struct nk_config *cfg, struct nk_err *err);

/* Says in the log what is weaker than it could be. */
void nk_app_setup_warn(const struct nk_config *cfg, const struct nk_user *user);

/* Options whose feature this build does not have, and too few descriptors, end the start. */
int nk_app_setup_check(const struct nk_config *cfg, struct nk_err *err);

#endif
