/*
 * The daemon's one object, shared by app.c, app_code.c and app_serve.c. Private to them.
 */
#ifndef NK_APP_INSIDE_H
#define NK_APP_INSIDE_H

#include <stdbool.h>
#include <uv.h>

#include "api/api.h"
#include "app_loop.h"
#include "base/job.h"
#include "code/run_sweep.h"
#include "config.h"
#include "files/leftovers.h"
#include "process/cgroups.h"
#include "process/confine.h"
#include "process/heritage.h"
#include "process/process.h"
#include "process/program.h"
#include "tenant/quota.h"
#include "tenant/tenant.h"

struct probe_job {
    struct nk_job job;
    struct nk_tenants *tenants; /* borrowed; NULL: none are asked for */
    struct nk_kernel kernel;    /* the pool thread's own copy */
    uint32_t without;
    struct nk_creds creds;
    struct nk_cgroups groups; /* becomes the app's */
};

struct nk_app {
    const struct nk_config *cfg; /* borrowed: outlives the app */
    uv_loop_t loop;
    struct nk_app_loop loop_size;
    struct nk_user user;
    struct nk_kernel kernel;
    struct nk_filter filter;
    char host[65];
    char **env; /* owned */
    struct nk_jobs *jobs;
    struct nk_reaper *reaper;
    struct nk_spawner *spawner;
    struct nk_registry *registry;
    struct nk_cgroups groups;
    struct nk_keys *keys;
    struct nk_lifetime *lifetime;
    struct nk_tickets *tickets;
    struct nk_archives *archives;
    struct nk_tenants *tenants; /* NULL: identities are off */
    struct nk_quota_watch *quota_watch;
    struct nk_quota quota;    /* the sandbox's own */
    const char **shared_dirs; /* owned; the strings are borrowed */
    struct nk_roots *roots;
    struct nk_runtimes *runtimes;
    struct nk_versions *versions;
    struct nk_context_table *contexts;
    const char **temp_dirs; /* owned; the strings are borrowed */
    struct nk_run_sweep leftovers;
    struct nk_server *server;
    struct nk_api api;
    struct probe_job probe;
    struct nk_heritage heritage;
    struct nk_program *program; /* NULL: none was asked for */
    struct nk_user program_user;
    char **program_env; /* owned */
    char *cwd;          /* owned; where we were started */
    int status;         /* what we end with */
    unsigned parts_over;
    struct nk_job sweep;
    struct nk_leftovers unfinished;
    struct nk_list passes; /* over identities' workspaces, while they run */
    int signal_fd;         /* owned */
    uv_poll_t signal_poll;
    bool signals_open, sweeping;
    bool hunting; /* the last sweep ends what identities run */
    uv_timer_t drain, last;
    uv_prepare_t flush;
    uv_poll_t log_poll;
    bool drain_open, last_open, flush_open, log_polled, probing;
    bool stuck; /* the loop was left before its end */
};

/* app.c: the end in order; PROGRAM gets the signal. Again: the grace is over. */
void nk_app_end(struct nk_app *a, enum nk_reason why, int signo);
void nk_app_part_over(void *app); /* the commands, or PROGRAM */

/* app_signals.c */
void nk_app_signals_block(const struct nk_config *cfg);
int nk_app_signals_open(struct nk_app *a);
void nk_app_signals_follow_parent(const struct nk_app *a);

/* app_program.c */
int nk_app_program_inherit(struct nk_app *a, const struct nk_heritage *from, struct nk_err *err);
int nk_app_program_start(struct nk_app *a);
void nk_app_program_fini(struct nk_app *a);

/* app_serve.c: the api's values from the options, the roots of files, the endpoint. */
int nk_app_serve_roots(struct nk_app *a, struct nk_err *err);
int nk_app_serve_fill(struct nk_app *a); /* 0 or -errno */
int nk_app_serve_open(struct nk_app *a); /* 0 or -errno */
int nk_app_serve_listen(struct nk_app *a, struct nk_err *err);

/* app_tenants.c: the identities; without --identities all of it does nothing. */
int nk_app_tenants_check(const struct nk_app *a, struct nk_err *err);
int nk_app_tenants_open(struct nk_app *a, struct nk_err *err);
void nk_app_tenants_close(struct nk_app *a);

/* app_leftovers.c: what a daemon that was killed has left in the roots, and in the workspace of an
 * identity that is named for the first time. */
void nk_app_leftovers_start(struct nk_app *a);
void nk_app_leftovers_of(struct nk_tenant *tenant, void *app);
void nk_app_leftovers_stop(struct nk_app *a);

/* app_code.c: the languages. */
int nk_app_code_load(struct nk_app *a, struct nk_err *err);
int nk_app_code_open(struct nk_app *a);   /* 0 or -errno */
int nk_app_code_fill(struct nk_app *a);   /* 0 or -errno */
void nk_app_code_start(struct nk_app *a); /* the self-test is over */
void nk_app_code_free(struct nk_app *a);

#endif
