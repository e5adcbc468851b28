/*
 * On whose account a request is, and what follows from it: the sandbox's own user, or an identity with
 * a uid, a workspace and an environment of its own. The only place that knows both.
 *
 * Values; what they point to outlives every request. Loop thread only.
 */
#ifndef NK_API_WHOSE_H
#define NK_API_WHOSE_H

#include "base/err.h"
#include "code/run.h"

struct nk_api;
struct nk_api_settings;
struct nk_owner;
struct nk_quota;
struct nk_req;

struct nk_whose {
    struct nk_owner *owner;          /* NULL: the sandbox's own */
    const struct nk_user *user;      /* whom commands run as */
    const struct nk_roots *roots;    /* where files may lie */
    const struct nk_creds *files_as; /* with whose rights they are touched; NULL: our own */
    const char *const *writable;     /* NULL-ended; the first is the working directory */
    const char *const *readable;     /* NULL-ended, or NULL */
    struct nk_quota *quota;
};

struct nk_whose nk_whose_of(const struct nk_req *req);

/* What commands are read with (exec_request.h): working directory, environment, users. Lies in the
 * request's arena. 0, or -1: no memory. */
int nk_whose_settings(struct nk_req *req, struct nk_api_settings *out, struct nk_err *err);

/* What is done around commands of `owner`. */
struct nk_run_config nk_whose_runs(const struct nk_api *api, struct nk_owner *owner);

#endif
