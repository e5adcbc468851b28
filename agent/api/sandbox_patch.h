/*
 * Changing the sandbox: everything is read and checked first, then applied, or nothing is.
 * Loop thread only; owns nothing.
 */
#ifndef NK_API_SANDBOX_PATCH_H
#define NK_API_SANDBOX_PATCH_H

#include "base/err.h"

struct nk_api;
struct nk_json;

int nk_sandbox_patch(struct nk_api *api, const struct nk_json *body, struct nk_err *err);
int nk_sandbox_token(struct nk_api *api, const struct nk_json *body, struct nk_err *err);
/* The option's text as the wire's value, allocated; NULL: no memory. */
char *nk_sandbox_network_json(const char *option);

#endif
