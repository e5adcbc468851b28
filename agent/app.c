#include "app.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "api/api.h"
#include "api/keys.h"
#include "api/tickets.h"
#include "app_inside.h"
#include "app_setup.h"
#include "base/clock.h"
#include "base/job.h"
#include "base/log.h"
#include "base/scope.h"
#include "code/context_table.h"
#include "code/versions.h"
#include "files/archives.h"
#include "files/roots.h"
#include "lifetime/lifetime.h"
#include "process/confine.h"
#include "process/mounts.h"
#include "process/reaper.h"
#include "process/registry.h"
#include "tenant/quota_watch.h"
#include "tenant/tenants.h"

#define MAP_FROM (64 * 1024) /* bytes: blocks of their own, given back to the kernel when freed */
#define NICE (-5)
#define DRAIN_MS 5000 /* for clients to take their last answers */
/* For what is under way then. A disk that does not answer would hold us for ever. */
#define SWEEP_MS 15000
#define LAST_MS 5000

static void notify_ready(void)
{
    const char *path = nk_config_env("NOTIFY_SOCKET");
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    nk_auto_fd int fd = -1;
    size_t len = path ? strlen(path) : 0;

    if (len == 0 || len >= sizeof addr.sun_path)
        return;
    memcpy(addr.sun_path, path, len);
    if (addr.sun_path[0] == '@')
        addr.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)sendto(fd, "READY=1", 7, MSG_NOSIGNAL, (struct sockaddr *)&addr,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

static void probe_work(struct nk_job *job)
{
    struct probe_job *p = NK_CONTAINER_OF(job, struct probe_job, job);

    nk_probe_groups(&p->kernel, p->without, &p->groups);
    nk_probe_slow(&p->kernel, p->without, &p->creds);
    if (p->tenants)
        nk_tenants_try(p->tenants, &p->kernel);
}

static void probe_done(struct nk_job *job, bool canceled)
{
    struct probe_job *p = NK_CONTAINER_OF(job, struct probe_job, job);
    struct nk_app *a = NK_CONTAINER_OF(p, struct nk_app, probe);

    a->probing = false;
    a->groups = p->groups;
    if (canceled || a->api.ending) /* an end kills the trials too: they tell nothing */
        return;
    a->kernel = p->kernel;
    nk_registry_use_marks(a->registry, nk_has(&a->kernel, NK_MECH_MARK));
    (void)nk_registry_use_groups(a->registry, &a->groups); /* without memory: without groups */
    if (a->tenants)
        nk_tenants_begin(a->tenants);
    nk_app_code_start(a);
    notify_ready();
    nk_app_leftovers_start(a);
    nk_log_msg(NK_LOG_INFO, "ready", "the self-test is over");
}

static void start_probe(struct nk_app *a)
{
    a->probing = true;
    a->probe = (struct probe_job){.job = {.work = probe_work, .done = probe_done},
                                  .kernel = a->kernel,
                                  .tenants = a->tenants,
                                  .without = a->cfg->without,
                                  .creds = a->user.creds};
    nk_job_submit(a->jobs, &a->probe.job);
}

static void on_log_writable(uv_poll_t *handle, int status, int events)
{
    (void)events;
    if (status == 0)
        nk_log_flush();
    if (status != 0 || !nk_log_pending())
        (void)uv_poll_stop(handle);
}

static void on_prepare(uv_prepare_t *handle)
{
    struct nk_app *a = handle->data;

    if (nk_log_pending() && a->log_polled)
        (void)uv_poll_start(&a->log_poll, UV_WRITABLE, on_log_writable);
}

/* Only this timer does not hold the loop: it ends what does. */
static void on_stuck(uv_timer_t *timer)
{
    struct nk_app *a = timer->data;

    nk_log_msg(NK_LOG_WARN, "stuck", "something under way does not end; it is left as it is");
    a->stuck = true;
    uv_stop(&a->loop);
}

static void end_within(struct nk_app *a, uint64_t ms)
{
    uv_update_time(&a->loop);
    (void)uv_timer_start(&a->last, on_stuck, ms, 0);
}

static void close_handles(struct nk_app *a)
{
    if (a->signals_open)
        uv_close((uv_handle_t *)&a->signal_poll, NULL);
    a->signals_open = false;
    if (a->drain_open)
        uv_close((uv_handle_t *)&a->drain, NULL);
    if (a->flush_open)
        uv_close((uv_handle_t *)&a->flush, NULL);
    if (a->log_polled)
        uv_close((uv_handle_t *)&a->log_poll, NULL);
    a->drain_open = a->flush_open = a->log_polled = false;
}

/* Services let go in the reverse order of their start; the loop ends when their handles are closed. */
static void close_services(struct nk_app *a)
{
    if (a->last_open)
        end_within(a, LAST_MS);
    nk_run_sweep_stop(&a->leftovers);
    nk_server_close(&a->server);
    nk_context_table_close(&a->contexts);
    nk_tenants_stop(a->tenants);
    nk_app_leftovers_stop(a);
    nk_quota_stop(&a->quota);
    nk_quota_watch_close(&a->quota_watch);
    nk_versions_close(&a->versions);
    nk_lifetime_close(&a->lifetime);
    a->api.lifetime = NULL;
    nk_keys_close(&a->keys);
    nk_archives_close(&a->archives);
    nk_program_close(&a->program);
    nk_registry_close(&a->registry);
    nk_spawner_close(&a->spawner);
    nk_reaper_close(&a->reaper);
    close_handles(a);
}

static void sweep_work(struct nk_job *job)
{
    const struct nk_app *a = NK_CONTAINER_OF(job, struct nk_app, sweep);

    if (a->program && !a->cfg->main_exit_leave)
        nk_program_sweep();
    if (a->hunting)
        nk_tenants_kill(a->tenants);
}

static void sweep_done(struct nk_job *job, bool canceled)
{
    (void)canceled;
    close_services(NK_CONTAINER_OF(job, struct nk_app, sweep));
}

/* Where orphans come to us, nothing that PROGRAM left behind outlives us. */
static void on_drained(void *ctx)
{
    struct nk_app *a = ctx;

    if (a->sweeping)
        return;
    (void)uv_timer_stop(&a->drain);
    a->hunting = nk_tenants_are_ready(a->tenants);
    if (!a->hunting && (!a->program || a->cfg->main_exit_leave)) {
        close_services(a);
        return;
    }
    a->sweeping = true;
    end_within(a, SWEEP_MS);
    a->sweep = (struct nk_job){.work = sweep_work, .done = sweep_done, .urgent = true};
    nk_job_submit(a->jobs, &a->sweep);
}

static void on_drain_over(uv_timer_t *timer)
{
    on_drained(timer->data);
}

void nk_app_part_over(void *app)
{
    struct nk_app *a = app;

    if (++a->parts_over < (a->program ? 2u : 1u) || !a->server)
        return;
    (void)uv_timer_start(&a->drain, on_drain_over, DRAIN_MS, 0);
    nk_server_drain(a->server, on_drained, a);
}

void nk_app_end(struct nk_app *a, enum nk_reason why, int signo)
{
    unsigned grace = a->api.ending ? 0 : (unsigned)a->cfg->grace_ms;

    if (!a->server)
        return;
    a->api.ending = true;
    nk_log_msg(NK_LOG_INFO, "ending", "no new work; running commands have %u ms", grace);
    nk_registry_end_all(a->registry, why, grace, nk_app_part_over, a);
    if (a->program)
        nk_program_end(a->program, signo, grace);
}

static void on_api_end(void *ctx)
{
    struct nk_app *a = ctx;

    nk_lifetime_forget(a->lifetime);
    nk_app_end(ctx, NK_REASON_SHUTDOWN, SIGTERM);
}

static void on_lifetime_over(void *ctx, enum nk_lifetime_over why)
{
    struct nk_app *a = ctx;

    if (why == NK_LIFETIME_IDLE)
        nk_lifetime_forget(a->lifetime);
    nk_app_end(a, why == NK_LIFETIME_TTL ? NK_REASON_TTL : NK_REASON_IDLE, SIGTERM);
}

static int open_lifetime(struct nk_app *a)
{
    const struct nk_lifetime_config cfg = {.loop = &a->loop,
                                           .ttl_ms = a->cfg->ttl_ms,
                                           .max_ttl_ms = a->cfg->max_ttl_ms,
                                           .idle_ms = a->cfg->idle_timeout_ms,
                                           .on_over = on_lifetime_over,
                                           .ctx = a};

    a->api.on_end = on_api_end;
    a->api.on_end_ctx = a;
    return nk_lifetime_open(&cfg, &a->lifetime);
}

static int open_handles(struct nk_app *a)
{
    int rc = uv_timer_init(&a->loop, &a->drain);

    a->drain.data = a;
    a->drain_open = rc == 0;
    a->last.data = a;
    a->last_open = rc == 0 && uv_timer_init(&a->loop, &a->last) == 0;
    if (a->last_open)
        uv_unref((uv_handle_t *)&a->last);
    if (rc == 0)
        rc = uv_prepare_init(&a->loop, &a->flush);
    a->flush_open = rc == 0;
    a->flush.data = a;
    if (rc == 0)
        rc = uv_prepare_start(&a->flush, on_prepare);
    a->log_polled = uv_poll_init(&a->loop, &a->log_poll, nk_log_fd()) == 0;
    return rc < 0 ? rc : nk_app_signals_open(a);
}

/* Threads made from here on inherit it, the pool's too: it denies nothing that we need once the
 * filesystem is as it should be. But the leak check's ptrace: then the loop starts no child itself. */
static bool confine_self(const struct nk_app *a)
{
    return !NK_ASAN && a->filter.program && !nk_app_setup_has_profile(a->cfg) &&
           nk_confine_apply(&a->filter) == 0;
}

static int open_processes(struct nk_app *a)
{
    const struct nk_config *cfg = a->cfg;
    bool root = geteuid() == 0;
    struct nk_registry_config rc = {
        .loop = &a->loop,
        .max_commands = (unsigned)cfg->max_commands,
        .log_total = cfg->log_total,
        .kernel = &a->kernel,
        .mark_first = root ? (gid_t)cfg->mark_first : 0,
        .mark_last = (gid_t)cfg->mark_last,
    };
    int res = nk_reaper_open(&a->loop, &a->reaper);

    if (res == 0 && nk_has(&a->kernel, NK_MECH_SUBREAPER))
        (void)nk_reaper_adopt(a->reaper);
    if (res == 0)
        res = nk_jobs_new(&a->loop, &a->jobs);
    if (res == 0)
        res = nk_spawner_open(
            &(struct nk_spawner_config){.loop = &a->loop,
                                        .kernel = &a->kernel,
                                        .reaper = a->reaper,
                                        .filter = a->filter.program ? &a->filter : NULL,
                                        .filter_foreign = nk_app_setup_has_profile(a->cfg),
                                        .loop_confined = confine_self(a)},
            &a->spawner);
    rc.jobs = a->jobs;
    rc.reaper = a->reaper;
    rc.spawner = a->spawner;
    if (res == 0)
        res = nk_registry_open(&rc, &a->registry);
    if (res == 0)
        res = nk_archives_open(
            &(struct nk_archives_config){
                .loop = &a->loop, .spawner = a->spawner, .reaper = a->reaper, .fsize = cfg->fsize},
            &a->archives);
    if (res == 0)
        res = nk_tickets_new(&a->tickets);
    if (res == 0)
        res = nk_app_code_open(a);
    return res < 0 ? res : nk_keys_open(&a->loop, &a->keys);
}

/* After a burst the memory goes back: no threshold that grows, and one arena; a second one would keep
 * what the start's jobs had. */
static void tune_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, MAP_FROM);
    (void)mallopt(M_TRIM_THRESHOLD, 2 * MAP_FROM);
    (void)mallopt(M_ARENA_MAX, 1);
}

static int compile_filter(struct nk_app *a, struct nk_err *err)
{
    if (nk_app_setup_has_profile(a->cfg))
        return nk_confine_compile_file(a->cfg->seccomp, &a->filter, err);
    return strcmp(a->cfg->seccomp, "off") == 0 ? 0 : nk_confine_compile(&a->filter, err);
}

static int prepare(struct nk_app *a, struct nk_err *err)
{
    const struct nk_config *cfg = a->cfg;

    if (nk_app_setup_check(cfg, err) < 0 || nk_app_setup_guard(cfg, err) < 0 ||
        compile_filter(a, err) < 0 || nk_app_setup_user(cfg, &a->user, err) < 0 ||
        nk_app_setup_program_user(cfg, &a->user, &a->program_user, err) < 0 ||
        nk_app_setup_roots(cfg, &a->user, err) < 0 ||
        nk_app_setup_token(cfg, &a->user, &a->api.token, err) < 0 ||
        nk_app_tenants_check(a, err) < 0)
        return -1;
    if (nk_app_code_load(a, err) < 0)
        return -1;
    a->env = nk_app_setup_env(cfg, &a->user);
    if (!a->env)
        return nk_fail(err, NK_OVERLOADED, "no memory");
    if (gethostname(a->host, sizeof a->host - 1) < 0)
        memcpy(a->host, "sandbox", sizeof "sandbox");
    return 0;
}

/* Ahead of the user's programs, where we may; children go back to 0. One that was started with a
 * priority of its own keeps it. */
static void prefer_self(void)
{
    errno = 0;
    if (getpriority(PRIO_PROCESS, 0) == 0 && errno == 0)
        (void)setpriority(PRIO_PROCESS, 0, NICE);
}

static int start(struct nk_app *a, struct nk_err *err)
{
    int rc;

    prefer_self();
    nk_confine_daemon();
    nk_probe_quick(&a->kernel, a->cfg->without);
    nk_app_loop_size(&a->loop_size, &a->loop);
    rc = open_handles(a);
    if (rc == 0)
        rc = open_lifetime(a);
    if (rc == 0)
        rc = open_processes(a);
    if (rc == 0)
        nk_lifetime_keep(a->lifetime, a->jobs, a->cfg->state_dir,
                         a->cfg->id ? a->cfg->id : a->host);
    if (rc < 0)
        return nk_fail_sys(err, -rc, "cannot start");
    if (nk_app_serve_roots(a, err) < 0 || nk_app_tenants_open(a, err) < 0)
        return -1;
    rc = nk_app_serve_fill(a);
    if (rc == 0)
        rc = nk_app_serve_open(a);
    if (rc < 0)
        return nk_fail_sys(err, -rc, "cannot start the endpoint");
    if (nk_app_serve_listen(a, err) < 0)
        return -1;
    start_probe(a);
    nk_app_signals_follow_parent(a);
    rc = a->cfg->program ? nk_app_program_start(a) : 0;
    return rc < 0 ? nk_fail_sys(err, -rc, "cannot start PROGRAM") : 0;
}

static void warn(const struct nk_app *a)
{
    nk_app_setup_warn(a->cfg, &a->user);
    if (!nk_reaper_adopts(a->reaper))
        nk_log_msg(NK_LOG_WARN, "no_reaping",
                   "neither process 1 nor a subreaper: orphans are not reaped here");
}

/* Until nothing holds the loop, or somebody has waited long enough for that. */
static void run_loop(struct nk_app *a)
{
    (void)uv_run(&a->loop, UV_RUN_DEFAULT);
    if (a->stuck || !a->last_open)
        return;
    a->last_open = false;
    uv_close((uv_handle_t *)&a->last, NULL);
    (void)uv_run(&a->loop, UV_RUN_DEFAULT);
}

int nk_app_run(const struct nk_config *cfg, const struct nk_heritage *heritage, bool *out_stuck,
               struct nk_err *err)
{
    struct nk_app *a = calloc(1, sizeof *a);
    int status = -1;
    bool json = cfg->log_json >= 0 ? cfg->log_json != 0 : !isatty(STDERR_FILENO);

    if (!a)
        return nk_fail(err, NK_OVERLOADED, "no memory");
    tune_memory();
    a->cfg = cfg;
    a->signal_fd = -1;
    nk_list_init(&a->passes);
    nk_app_signals_block(cfg);
    if (getpid() == 1)
        nk_mounts_make();
    if (nk_app_program_inherit(a, heritage, err) < 0) {
        nk_app_program_fini(a);
        free(a);
        return -1;
    }
    nk_log_init(STDERR_FILENO, (enum nk_log_level)cfg->log_level, json);
    if (prepare(a, err) == 0 && uv_loop_init(&a->loop) == 0) {
        if (start(a, err) == 0) {
            warn(a);
            run_loop(a);
            status = a->status;
        } else {
            close_services(a);
            run_loop(a);
        }
        *out_stuck = a->stuck;
        if (a->stuck) { /* jobs of the pool still use what would be freed */
            nk_log_fini();
            return status;
        }
        nk_cgroups_close(&a->groups);
        nk_app_tenants_close(a);
        nk_roots_free(a->roots);
        nk_jobs_free(a->jobs);
        nk_tickets_free(a->tickets);
        (void)uv_loop_close(&a->loop);
    }
    nk_sandbox_fini(&a->api.sandbox);
    nk_app_code_free(a);
    nk_app_setup_free_env(a->env);
    nk_app_program_fini(a);
    nk_close_fd(&a->signal_fd);
    nk_confine_fini(&a->filter);
    nk_log_fini();
    free(a);
    return status;
}
