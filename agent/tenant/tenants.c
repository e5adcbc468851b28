#include "tenant/tenants.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/roots.h"
#include "tenant/tenants_private.h"
#include "tenant/uid_map.h"

#define STATE_DIR_MAX 200 /* so that a workspace's path fits into a user's home */

static bool may_take(uid_t uid, void *ctx)
{
    const struct nk_tenants *t = ctx;

    return !t->barred[uid - t->cfg.uid_first] && !nk_state_has(&t->state, uid);
}

static struct nk_uid_map map_of(struct nk_tenants *t)
{
    return (struct nk_uid_map){.dir = t->state.dir,
                               .first = t->cfg.uid_first,
                               .count = t->count,
                               .may_take = may_take,
                               .ctx = t};
}

static int check_config(const struct nk_tenants_config *cfg, struct nk_err *err)
{
    if (cfg->uid_last - cfg->uid_first >= NK_UID_MAP_MAX)
        return nk_fail(err, NK_BAD_REQUEST, "--uid-range: more than %u uids", NK_UID_MAP_MAX);
    if (strlen(cfg->state_dir) > STATE_DIR_MAX)
        return nk_fail(err, NK_BAD_PATH, "--state-dir: longer than %d bytes", STATE_DIR_MAX);
    return 0;
}

static int open_state(struct nk_tenants *t, struct nk_err *err)
{
    struct nk_uid_map map;

    if (geteuid() != 0)
        return 0;
    if (nk_state_open(t->cfg.state_dir, &t->state, err) < 0)
        return -1;
    map = map_of(t);
    return nk_uid_map_used(&map, t->swept, err);
}

int nk_tenants_open(const struct nk_tenants_config *cfg, struct nk_tenants **out,
                    struct nk_err *err)
{
    struct nk_tenants *t;

    if (check_config(cfg, err) < 0)
        return -1;
    t = calloc(1, sizeof *t);
    if (!t)
        return nk_fail(err, NK_OVERLOADED, "no memory");
    t->cfg = *cfg;
    t->state = (struct nk_state){-1, -1, -1, false};
    t->count = cfg->uid_last - cfg->uid_first + 1;
    t->barred = calloc(t->count, 1);
    t->swept = calloc(t->count, 1);
    nk_list_init(&t->early);
    for (size_t i = 0; i < NK_TENANTS_BUCKETS; i++)
        nk_list_init(&t->bucket[i]);
    if (!t->barred || !t->swept) {
        nk_tenants_close(&t);
        return nk_fail(err, NK_OVERLOADED, "no memory");
    }
    if (open_state(t, err) < 0) {
        nk_tenants_close(&t);
        return -1;
    }
    *out = t;
    return 0;
}

static void free_tenant(struct nk_tenant *one)
{
    nk_roots_free(one->roots);
    free(one->workspace);
    free(one->out);
    free(one->tmp);
    free(one);
}

void nk_tenants_close(struct nk_tenants **slot)
{
    struct nk_tenants *t = *slot;

    if (!t)
        return;
    *slot = NULL;
    for (size_t i = 0; i < NK_TENANTS_BUCKETS; i++)
        while (!nk_list_empty(&t->bucket[i])) {
            struct nk_tenant *one = nk_list_entry(t->bucket[i].next, struct nk_tenant, bucket);

            nk_list_remove(&one->bucket);
            free_tenant(one);
        }
    nk_sweep_fini(&t->sweep);
    nk_state_close(&t->state);
    free(t->barred);
    free(t->swept);
    free(t);
}

static struct nk_list *bucket_of(struct nk_tenants *t, const uint8_t digest[32])
{
    unsigned hash = digest[0] | (unsigned)digest[1] << 8;

    return &t->bucket[hash % NK_TENANTS_BUCKETS];
}

static struct nk_tenant *find_any(struct nk_tenants *t, const uint8_t digest[32])
{
    struct nk_list *head = bucket_of(t, digest);

    for (struct nk_list *n = head->next; n != head; n = n->next) {
        struct nk_tenant *one = nk_list_entry(n, struct nk_tenant, bucket);

        if (memcmp(one->digest, digest, sizeof one->digest) == 0)
            return one;
    }
    return NULL;
}

struct nk_tenant *nk_tenants_find(struct nk_tenants *t, const uint8_t digest[32])
{
    struct nk_tenant *one = find_any(t, digest);

    return one && one->open ? one : NULL;
}

static int set_user(struct nk_tenant *one, uid_t uid)
{
    const char *dir = one->all->cfg.state_dir;
    struct nk_user *u = &one->user;

    *u = (struct nk_user){.creds = {.uid = uid, .gid = uid}, .shell = "/bin/sh"};
    (void)snprintf(u->name, sizeof u->name, "%u", (unsigned)uid);
    (void)snprintf(u->home, sizeof u->home, "%s/w/%u", dir, (unsigned)uid);
    one->workspace = strdup(u->home);
    if (asprintf(&one->out, "%s/out", u->home) < 0)
        one->out = NULL;
    if (asprintf(&one->tmp, "%s/tmp", u->home) < 0)
        one->tmp = NULL;
    one->places[0] = one->workspace;
    one->temp_dirs[0] = one->tmp;
    one->temp_dirs[1] = one->workspace;
    return one->workspace && one->out && one->tmp ? 0 : -ENOMEM;
}

static void open_work(struct nk_job *job)
{
    struct nk_tenant *one = NK_CONTAINER_OF(job, struct nk_tenant, job);
    struct nk_tenants *t = one->all;
    struct nk_uid_map map = map_of(t);
    uid_t uid;

    one->err.code = NK_OK;
    if (nk_uid_map_take(&map, one->digest, &uid, &one->err) < 0)
        return;
    if (set_user(one, uid) < 0) {
        (void)nk_fail(&one->err, NK_OVERLOADED, "no memory for an identity");
        return;
    }
    if (nk_state_workspace(&t->state, &one->user.creds, &one->err) < 0)
        return;
    /* No descriptor is held: there may be many. The folder above is root's. */
    (void)nk_roots_new_at(-1, one->workspace, t->cfg.kernel, &one->roots, &one->err);
}

static void tell(struct nk_tenant *one, const struct nk_err *err)
{
    while (!nk_list_empty(&one->waiting)) {
        struct nk_tenant_ask *ask = nk_list_entry(one->waiting.next, struct nk_tenant_ask, link);

        nk_list_remove(&ask->link);
        ask->told(ask, err ? NULL : one, err);
    }
}

static void set_quota(struct nk_tenant *one)
{
    const struct nk_tenants_config *cfg = &one->all->cfg;

    nk_quota_init(&one->quota, &(struct nk_quota_config){.jobs = cfg->jobs,
                                                         .owner = &one->owner,
                                                         .roots = one->roots,
                                                         .free = nk_state_folders,
                                                         .share = &one->owner,
                                                         .max_bytes = cfg->quota_bytes,
                                                         .max_files = cfg->quota_files});
}

static void open_done(struct nk_job *job, bool canceled)
{
    struct nk_tenant *one = NK_CONTAINER_OF(job, struct nk_tenant, job);

    if (canceled || one->all->stopped)
        (void)nk_fail(&one->err, NK_SHUTTING_DOWN, "the agent is ending");
    if (one->err.code == NK_OK) {
        one->open = true;
        nk_registry_add_owner(one->all->cfg.registry, &one->owner);
        set_quota(one);
        if (one->all->cfg.on_open)
            one->all->cfg.on_open(one, one->all->cfg.ctx);
        tell(one, NULL);
        return;
    }
    nk_list_remove(&one->bucket);
    tell(one, &one->err);
    free_tenant(one);
}

static struct nk_tenant *new_tenant(struct nk_tenants *t, const uint8_t digest[32])
{
    struct nk_tenant *one = calloc(1, sizeof *one);

    if (!one)
        return NULL;
    one->all = t;
    memcpy(one->digest, digest, sizeof one->digest);
    nk_list_init(&one->waiting);
    nk_list_append(bucket_of(t, digest), &one->bucket);
    one->job = (struct nk_job){.work = open_work, .done = open_done};
    if (t->ready)
        nk_job_submit(t->cfg.jobs, &one->job);
    else
        nk_list_append(&t->early, &one->job.link);
    return one;
}

void nk_tenants_go_on(struct nk_tenants *t)
{
    t->ready = true;
    while (!nk_list_empty(&t->early)) {
        struct nk_job *job = nk_list_entry(t->early.next, struct nk_job, link);

        nk_list_remove(&job->link);
        nk_job_submit(t->cfg.jobs, job);
    }
}

int nk_tenants_ask(struct nk_tenants *t, const uint8_t digest[32], struct nk_tenant_ask *ask,
                   struct nk_err *err)
{
    struct nk_tenant *one = find_any(t, digest);

    if (!one)
        one = new_tenant(t, digest);
    if (!one)
        return nk_fail(err, NK_OVERLOADED, "no memory for an identity");
    nk_list_append(&one->waiting, &ask->link);
    return 0;
}

bool nk_tenants_are_ready(const struct nk_tenants *t)
{
    return t && t->ready;
}

void nk_tenants_stop(struct nk_tenants *t)
{
    if (!t)
        return;
    t->stopped = true;
    for (size_t i = 0; i < NK_TENANTS_BUCKETS; i++)
        for (struct nk_list *n = t->bucket[i].next; n != &t->bucket[i]; n = n->next)
            nk_quota_stop(&nk_list_entry(n, struct nk_tenant, bucket)->quota);
    if (t->task.running)
        nk_task_stop(&t->task);
}

void nk_tenants_leave(struct nk_tenant_ask *ask)
{
    nk_list_remove(&ask->link);
}
