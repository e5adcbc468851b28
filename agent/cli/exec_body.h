/*
 * Members of a request that runs something, from what was typed: exec and run share them.
 *
 * 0, or -1 with err. No state of its own.
 */
#ifndef NK_CLI_EXEC_BODY_H
#define NK_CLI_EXEC_BODY_H

#include "base/err.h"
#include "base/json_out.h"
#include "cli/args.h"

/* What the daemon takes as a JSON body by default. */
#define NK_EXEC_BODY_MAX (1024u * 1024u)

int nk_exec_body_text(struct nk_json_out *out, const char *key, const char *s, struct nk_err *err);
/* "NAME=VALUE" of each item; none: no member. */
int nk_exec_body_env(struct nk_json_out *out, const struct nk_args_list *env, struct nk_err *err);
int nk_exec_body_timeout(struct nk_json_out *out, const char *seconds, struct nk_err *err);

#endif
