#include "api/whose.h"

#include <string.h>

#include "api/api.h"
#include "api/env.h"
#include "base/arena.h"
#include "http/request.h"
#include "tenant/tenant.h"

struct nk_whose nk_whose_of(const struct nk_req *req)
{
    const struct nk_api *api = nk_req_app(req);
    struct nk_tenant *t = nk_tenant_of(nk_req_identity(req));

    if (!t)
        return (struct nk_whose){.user = api->user,
                                 .roots = api->roots,
                                 .files_as = api->files_as,
                                 .writable = api->set.writable,
                                 .readable = api->set.readable,
                                 .quota = api->quota};
    return (struct nk_whose){.owner = &t->owner,
                             .user = &t->user,
                             .roots = t->roots,
                             .files_as = &t->user.creds,
                             .writable = t->places,
                             .quota = &t->quota};
}

/* No file is larger than all that may be kept: one byte more is enough to be found out. */
static void bound_file(struct nk_limits *limits, uint64_t quota)
{
    if (quota > 0 && quota < UINT64_MAX && (limits->fsize == 0 || limits->fsize > quota + 1))
        limits->fsize = quota + 1;
}

/* An identity is one user: another one cannot be asked for. */
int nk_whose_settings(struct nk_req *req, struct nk_api_settings *out, struct nk_err *err)
{
    const struct nk_api *api = nk_req_app(req);
    const struct nk_tenant *t = nk_tenant_of(nk_req_identity(req));

    const char *const *env = api->set.env;

    *out = api->set;
    bound_file(&out->limits, nk_whose_of(req).quota->cfg.max_bytes);
    if (t) {
        out->working_dir = t->workspace;
        out->limits.no_queues = true; /* they outlive their user, and nobody could list them */
        out->allow_users = NULL;
        env = nk_env_home(env, &t->user, t->tmp, nk_req_arena(req));
    }
    out->env = env ? nk_env_copy(env, nk_req_arena(req)) : NULL;
    return out->env ? 0 : nk_fail(err, NK_OVERLOADED, "no memory for this request");
}

struct nk_run_config nk_whose_runs(const struct nk_api *api, struct nk_owner *owner)
{
    const struct nk_tenant *t = nk_tenant_of(owner);
    struct nk_run_config cfg = api->runs;

    cfg.share = owner;
    if (!t)
        return cfg;
    cfg.roots = t->roots;
    cfg.output_dir = t->out;
    cfg.temp_dirs = t->temp_dirs;
    cfg.relative = true;
    return cfg;
}
