/* Identities: what the options say of them, and where users may leave something for others. */
#include <errno.h>
#include <stdlib.h>

#include "app_inside.h"
#include "process/probe.h"
#include "process/registry.h"
#include "tenant/quota_watch.h"
#include "tenant/tenants.h"

static int check_user(const struct nk_config *cfg, const struct nk_user *user, const char *option,
                      struct nk_err *err)
{
    if (user->creds.uid < cfg->uid_first || user->creds.uid > cfg->uid_last)
        return 0;
    return nk_fail(err, NK_BAD_REQUEST, "--uid-range: uid %u of %s lies in it",
                   (unsigned)user->creds.uid, option);
}

int nk_app_tenants_check(const struct nk_app *a, struct nk_err *err)
{
    if (!a->cfg->identities)
        return 0;
    if (check_user(a->cfg, &a->user, "--user", err) < 0)
        return -1;
    return check_user(a->cfg, &a->program_user, "--program-user", err);
}

/* Those that others may not write to are left out when they are looked at. */
static int list_shared(struct nk_app *a)
{
    static const char *const usual[] = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock"};
    const struct nk_strings *writable = &a->cfg->writable;
    size_t count = 0;

    a->shared_dirs = calloc(NK_COUNT(usual) + writable->count + 2, sizeof *a->shared_dirs);
    if (!a->shared_dirs)
        return -ENOMEM;
    for (size_t i = 0; i < NK_COUNT(usual); i++)
        a->shared_dirs[count++] = usual[i];
    for (size_t i = 0; i < writable->count; i++)
        a->shared_dirs[count++] = writable->item[i];
    a->shared_dirs[count] = a->cfg->output_dir;
    return 0;
}

/* The sandbox's own user is bound as an identity is, where its files may lie. */
static void set_own_quota(struct nk_app *a)
{
    const struct nk_config *cfg = a->cfg;

    nk_quota_init(&a->quota, &(struct nk_quota_config){.jobs = a->jobs,
                                                       .owner = nk_registry_own(a->registry),
                                                       .roots = a->roots,
                                                       .of_one = true,
                                                       .uid = a->user.creds.uid,
                                                       .max_bytes = cfg->quota_bytes,
                                                       .max_files = cfg->quota_files});
}

int nk_app_tenants_open(struct nk_app *a, struct nk_err *err)
{
    const struct nk_config *cfg = a->cfg;

    set_own_quota(a);
    if (nk_quota_watch_open(&a->loop, a->registry, &a->quota_watch) < 0)
        return nk_fail(err, NK_OVERLOADED, "no memory");
    if (!cfg->identities)
        return 0;
    nk_probe_set(&a->kernel, NK_MECH_IDENTITIES, "not tested yet");
    if (list_shared(a) < 0)
        return nk_fail(err, NK_OVERLOADED, "no memory");
    return nk_tenants_open(&(struct nk_tenants_config){.jobs = a->jobs,
                                                       .registry = a->registry,
                                                       .kernel = &a->kernel,
                                                       .state_dir = cfg->state_dir,
                                                       .shared = a->shared_dirs,
                                                       .quota_bytes = cfg->quota_bytes,
                                                       .quota_files = cfg->quota_files,
                                                       .uid_first = (uid_t)cfg->uid_first,
                                                       .uid_last = (uid_t)cfg->uid_last,
                                                       .mark_first = (gid_t)cfg->mark_first,
                                                       .mark_last = (gid_t)cfg->mark_last,
                                                       .on_open = nk_app_leftovers_of,
                                                       .ctx = a},
                           &a->tenants, err);
}

void nk_app_tenants_close(struct nk_app *a)
{
    nk_tenants_close(&a->tenants);
    free(a->shared_dirs);
}
