/*
 * Changing the sandbox: everything is read and checked first, then applied, or nothing is.
 * Loop thread only; owns nothing.
 */
#ifndef NK_API_SANDBOX_PATCH_H
#define NK_API_SANDBOX_PATCH_H

#include "base/err.h"

struct nk_api;
struct nk_json;
struct nk_limits;

struct nk_sandbox_patch;

/* Reads and checks. `*out` is then to be applied or not, and freed. */
int nk_sandbox_patch_new(const struct nk_api *api, const struct nk_json *body,
                         struct nk_sandbox_patch **out, struct nk_err *err);
void nk_sandbox_patch_free(struct nk_sandbox_patch *p);
void nk_sandbox_patch_apply(struct nk_api *api, struct nk_sandbox_patch *p);
/* The limits as they are now, with what it asks for; NULL: it asks for none. What it does not name may
 * change until it is applied: ask again then. */
struct nk_limits *nk_sandbox_patch_limits(const struct nk_api *api, struct nk_sandbox_patch *p);

int nk_sandbox_token(struct nk_api *api, const struct nk_json *body, struct nk_err *err);
/* The option's text as the wire's value, allocated; NULL: no memory. */
char *nk_sandbox_network_json(const char *option);

#endif
