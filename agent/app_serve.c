/* What the endpoint is given: the options' values, the roots, the listeners. */
#include <errno.h>
#include <unistd.h>

#include "app_inside.h"
#include "base/clock.h"
#include "base/log.h"
#include "files/roots.h"
#include "lifetime/lifetime.h"

static struct nk_api_settings api_settings(const struct nk_app *a)
{
    const struct nk_config *cfg = a->cfg;

    return (struct nk_api_settings){
        .id = cfg->id ? cfg->id : a->host,
        .auth = !cfg->no_auth,
        .origins = (const char *const *)cfg->allow_origin.item,
        .hosts = (const char *const *)cfg->allow_host.item,
        .allow_users = (const char *const *)cfg->allow_user.item,
        .env = (const char *const *)a->env,
        .working_dir = cfg->writable.item[0],
        .writable = (const char *const *)cfg->writable.item,
        .readable = (const char *const *)cfg->readable.item,
        .timeout_ms = cfg->timeout_ms,
        .max_timeout_ms = cfg->max_timeout_ms,
        .max_output = cfg->max_output,
        .log_bytes = cfg->log_bytes,
        .log_total = cfg->log_total,
        .max_body = cfg->max_body,
        .max_upload = cfg->max_upload,
        .max_commands = (unsigned)cfg->max_commands,
        .max_processes = (unsigned)cfg->max_processes,
        .limits = {.nproc = cfg->nproc ? cfg->nproc : cfg->max_processes,
                   .nofile_soft = cfg->nofile,
                   .fsize = cfg->fsize,
                   .memory = cfg->memory},
        .grace_ms = (unsigned)cfg->grace_ms,
    };
}

/* As root the rights of the command user are taken for each job; else they are our own. */
static const struct nk_creds *files_as(const struct nk_app *a)
{
    return geteuid() == 0 && a->user.creds.uid != 0 ? &a->user.creds : NULL;
}

/* The roots are opened with the rights of whom they are for. */
int nk_app_serve_roots(struct nk_app *a, struct nk_err *err)
{
    const struct nk_config *cfg = a->cfg;
    const struct nk_creds *as = files_as(a);
    bool switched = as && nk_job_become(as) == 0;
    int rc = nk_roots_new((const char *const *)cfg->writable.item,
                          (const char *const *)cfg->readable.item, &a->kernel, &a->roots, err);

    if (switched)
        nk_job_restore();
    return rc;
}

int nk_app_serve_fill(struct nk_app *a)
{
    struct nk_api *api = &a->api;

    api->lifetime = a->lifetime;
    api->loop = &a->loop;
    api->set = api_settings(a);
    api->jobs = a->jobs;
    api->groups = &a->groups;
    api->processes = a->registry;
    api->keys = a->keys;
    api->tickets = a->tickets;
    api->archives = a->archives;
    api->tenants = a->tenants;
    api->quota = &a->quota;
    api->quota_watch = a->quota_watch;
    api->roots = a->roots;
    api->files_as = files_as(a);
    api->spawner = a->spawner;
    api->reaper = a->reaper;
    api->kernel = &a->kernel;
    api->user = &a->user;
    nk_id_new(api->instance);
    api->created_wall_ms = nk_lifetime_created_at(a->lifetime);
    api->started_ms = nk_clock_mono_ms();
    if (nk_sandbox_init(&api->sandbox, api, a->cfg->network, a->cfg->network_outside) < 0)
        return -ENOMEM;
    return nk_app_code_fill(a);
}

int nk_app_serve_open(struct nk_app *a)
{
    struct nk_server_config sc = {
        .routes = nk_routes,
        .route_count = nk_route_count,
        .hooks = nk_api_hooks(&a->api),
        .limits = {.header_max = NK_HEADER_MAX,
                   .header_lines_max = NK_HEADER_LINES_MAX,
                   .url_max = NK_URL_MAX,
                   .chunk_line_max = NK_CHUNK_LINE_MAX,
                   .json_max = a->cfg->max_body,
                   .upload_max = a->cfg->max_upload,
                   .conns_max = NK_CONNS_MAX,
                   .conns_reserved = NK_CONNS_RESERVED,
                   .header_ms = NK_HEADER_MS,
                   .idle_ms = NK_IDLE_MS,
                   .body_grace_ms = NK_BODY_GRACE_MS,
                   .body_min_rate = NK_BODY_MIN_RATE,
                   .write_stall_ms = NK_WRITE_STALL_MS,
                   .local_stall_ms = NK_LOCAL_STALL_MS},
        .instance = a->api.instance,
        .jobs = a->jobs,
    };
    int rc = nk_server_open(&a->loop, &sc, &a->server);

    a->api.server = a->server;
    return rc;
}

int nk_app_serve_listen(struct nk_app *a, struct nk_err *err)
{
    const struct nk_config *cfg = a->cfg;

    if (cfg->socket && nk_server_listen_unix(a->server, cfg->socket, err) < 0)
        return -1;
    for (size_t i = 0; i < cfg->listen.count; i++) {
        unsigned port;

        if (nk_server_listen_tcp(a->server, cfg->listen.item[i], &port, err) < 0)
            return -1;
        nk_log_write(NK_LOG_INFO, "listening", NULL,
                     (const struct nk_log_field[]){{"address", cfg->listen.item[i], 0},
                                                   {"port", NULL, port},
                                                   {NULL, NULL, 0}});
    }
    if (cfg->vsock)
        return nk_server_listen_vsock(a->server, (unsigned)cfg->vsock, err);
    return 0;
}
