/*
 * The environment of a command: built, never inherited.
 *
 * Lists are "K=V", NULL-ended, in the request's arena; entries of the base list are shared with it.
 * Pure but for the arena.
 */
#ifndef NK_API_ENV_H
#define NK_API_ENV_H

#include "base/err.h"

struct nk_arena;
struct nk_json;
struct nk_user;

#define NK_ENV_VALUE_MAX (128u * 1024u)
#define NK_ENV_TOTAL_MAX (1024u * 1024u)

/* The base environment with `env` (an object, or NULL) laid over it: NULL-ended, in the arena. */
int nk_env_build(const char *const *base, const struct nk_json *env, struct nk_arena *arena,
                 const char *const **out, struct nk_err *err);

/* The base environment as it is now: PATCH may replace it while a start waits. NULL: no memory. */
const char *const *nk_env_copy(const char *const *base, struct nk_arena *arena);

/* The environment as another user: HOME, USER, LOGNAME and SHELL are theirs, unless the request
 * itself set them. NULL: no memory. */
const char *const *nk_env_as(const char *const *envp, const char *const *base,
                             const struct nk_user *user, struct nk_arena *arena);

/* `base` for an identity: its home, names and shell, and a folder of its own for what is temporary.
 * NULL: no memory. */
const char *const *nk_env_home(const char *const *base, const struct nk_user *user, const char *tmp,
                               struct nk_arena *arena);

/* What programs on a terminal look for, where it is not set: TERM, COLORTERM, LANG. NULL: no
 * memory. */
const char *const *nk_env_on_terminal(const char *const *envp, struct nk_arena *arena);

#endif
