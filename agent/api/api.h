/*
 * The native API: what a request becomes.
 *
 * Sees `http` and every room below, and stays thin: read the request, call one room, write the
 * reply. One struct for all handlers, owned by app; loop thread only.
 */
#ifndef NK_API_API_H
#define NK_API_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "api/sandbox.h"
#include "base/err.h"
#include "base/id.h"
#include "base/secret.h"
#include "code/run.h"
#include "http/server.h"
#include "process/probe.h"
#include "process/spawn.h"
#include "process/userdb.h"

struct nk_archives;
struct nk_cgroups;
struct nk_context_table;
struct nk_jobs;
struct nk_keys;
struct nk_lifetime;
struct nk_quota;
struct nk_quota_watch;
struct nk_reaper;
struct nk_registry;
struct nk_roots;
struct nk_spawner;
struct nk_tenants;
struct nk_tickets;
struct nk_api;

/* Values of the options, as far as handlers need them. Strings are borrowed from the config. */
struct nk_api_settings {
    const char *id;                 /* --id */
    bool auth;                      /* false: --no-auth */
    const char *const *origins;     /* NULL-ended */
    const char *const *hosts;       /* NULL-ended */
    const char *const *allow_users; /* NULL-ended */
    const char *const *env;         /* "K=V", NULL-ended: base environment of commands, complete */
    const char *working_dir;
    const char *const *writable;         /* NULL-ended; the first is working_dir */
    const char *const *readable;         /* NULL-ended, or NULL */
    uint64_t timeout_ms, max_timeout_ms; /* 0: none */
    size_t max_output, log_bytes, log_total;
    uint64_t max_body, max_upload;
    unsigned max_commands, max_processes;
    struct nk_limits limits;
    unsigned grace_ms;
};

struct nk_api {
    uv_loop_t *loop; /* everything here is borrowed: outlives the api */
    struct nk_api_settings set;
    struct nk_server *server;
    struct nk_jobs *jobs;
    struct nk_cgroups *groups; /* not open where there are none */
    struct nk_registry *processes;
    struct nk_keys *keys;
    struct nk_lifetime *lifetime;
    struct nk_sandbox sandbox; /* owned */
    struct nk_tickets *tickets;
    struct nk_tenants *tenants; /* NULL: identities are off */
    struct nk_quota *quota;     /* the sandbox's own */
    struct nk_quota_watch *quota_watch;
    struct nk_archives *archives;
    struct nk_context_table *contexts;
    struct nk_spawner *spawner;
    struct nk_reaper *reaper;
    struct nk_kernel *kernel;
    struct nk_run_config runs;       /* what is done around commands */
    const struct nk_user *user;      /* whom commands run as */
    const struct nk_roots *roots;    /* where files may lie */
    const struct nk_creds *files_as; /* with whose rights they are touched; NULL: our own */
    struct nk_secret token;
    char instance[NK_ID_MAX];
    int64_t created_wall_ms;
    uint64_t started_ms;       /* monotonic */
    uint64_t answers[6];       /* ever given, by the first digit of their status */
    bool ending;               /* new work is 503 shutting_down */
    void (*on_end)(void *ctx); /* asked to end (DELETE /v1/sandbox) */
    void *on_end_ctx;
};

extern const struct nk_route nk_routes[];
extern const size_t nk_route_count;

/* --print-routes: the table as JSON on standard output. 0, or -1 where it could not be written. */
int nk_api_print_routes(void);

/* What the server is given; `app` is the struct nk_api. */
struct nk_http_hooks nk_api_hooks(struct nk_api *api);

#endif
