#include "api/starter.h"

#include "api/api.h"
#include "api/env.h"
#include "api/whose.h"
#include "base/json.h"
#include "code/context_table.h"
#include "code/outcome.h"
#include "code/run.h"
#include "http/request.h"
#include "process/registry.h"
#include "tenant/quota_watch.h"

/* The images of code, and what it gave in a context, are told after its end. */
static void keep(struct nk_starter *l, struct nk_process *p)
{
    const struct nk_run *run = nk_run_of(p);

    if (l->kind != NK_EXEC_CODE_STREAM && !(run && nk_run_outcome(run)))
        return;
    l->kept = p;
    nk_registry_hold(p);
}

static int launch(struct nk_starter *l, const struct nk_command *cmd, struct nk_err *err)
{
    struct nk_process *p;

    if (nk_process_start(l->api->processes, cmd, l->req ? l->watcher : NULL, &p, err) < 0)
        return -1;
    if (l->req)
        keep(l, p);
    nk_keys_bind(&l->use, p);
    return 0;
}

/* The run is the context's from now on, which owns it also where it could not be made. */
static int make_context(struct nk_starter *l, struct nk_err *err)
{
    struct nk_run *run = l->run;

    l->run = NULL;
    if (nk_context_table_make(l->api->contexts, run, &l->made, err) < 0)
        return -1;
    nk_context_ref(l->made);
    nk_keys_bind(&l->use, nk_context_first(l->made));
    return 0;
}

static int run_in_context(struct nk_starter *l, struct nk_err *err)
{
    struct nk_context *context = l->turn.context;
    struct nk_context_info info = nk_context_info(context);
    const char *const argv[] = {info.language, "context", info.id, NULL};
    struct nk_command cmd = *nk_run_command(l->run);
    struct nk_process *p;

    cmd.argv = argv;
    cmd.cwd = info.cwd;
    cmd.host = nk_context_host(context);
    if (!cmd.host)
        return nk_fail(err, NK_OVERLOADED, "the interpreter has just ended");
    if (nk_process_start(l->api->processes, &cmd, l->req ? l->watcher : NULL, &p, err) < 0)
        return -1;
    if (l->req)
        keep(l, p);
    nk_keys_bind(&l->use, p);
    nk_run_outcome(l->run)->once = l->kind != NK_EXEC_CONTEXT && !l->survives;
    nk_context_run(&l->turn, p, nk_run_outcome(l->run), nk_run_code(l->run),
                   cmd.stdin_given || cmd.stdin_open);
    return 0;
}

static int launch_run(struct nk_starter *l, struct nk_err *err)
{
    int rc;

    if (l->kind == NK_EXEC_CONTEXT_NEW)
        return make_context(l, err);
    rc = l->turn.context ? run_in_context(l, err) : launch(l, nk_run_command(l->run), err);
    if (rc == 0) {
        nk_run_started(l->run);
        l->run = NULL;
    }
    return rc;
}

/* The interpreter may have ended since the turn came: then the run waits for the next one. */
static bool wait_again(struct nk_starter *l, struct nk_err *err)
{
    struct nk_context *context = l->turn.context;

    if (!context || nk_context_host(context) || nk_context_wait_again(&l->turn, err) < 0)
        return false;
    l->waits = l->prepared = true;
    return true;
}

/* Without a request it goes on all the same where it survives its client. */
static void on_prepared(void *ctx, const struct nk_err *failed)
{
    struct nk_starter *l = ctx;
    struct nk_err err = {0};

    if (failed)
        err = *failed;
    else if (!l->req && !l->survives)
        (void)nk_fail(&err, NK_OVERLOADED, "the client left before the start");
    else if (wait_again(l, &err))
        return;
    else if (err.code == NK_OK)
        (void)launch_run(l, &err);
    if (err.code != NK_OK) {
        nk_context_leave(&l->turn);
        nk_run_free(l->run);
        nk_keys_drop(&l->use, &err);
    }
    l->run = NULL;
    l->done(l, err.code == NK_OK ? NULL : &err);
}

static void on_turn(struct nk_turn *t, const struct nk_err *err)
{
    struct nk_starter *l = NK_CONTAINER_OF(t, struct nk_starter, turn);

    l->waits = false;
    if (err || l->prepared)
        on_prepared(l, err);
    else
        nk_run_prepare(l->run, on_prepared, l);
}

/* The look at the files comes in the turn: what others change before is not this run's. */
static int wait_turn(struct nk_starter *l, struct nk_context *context, struct nk_err *err)
{
    l->turn.come = on_turn;
    if (nk_context_wait_turn(context, &l->turn, l->ask.queue, err) == 0) {
        l->waits = true;
        return 0;
    }
    nk_run_free(l->run);
    l->run = NULL;
    return -1;
}

static int find_runtime(const struct nk_starter *l, const struct nk_runtime **out,
                        struct nk_err *err)
{
    const char *name = l->ask.language ? l->ask.language : l->api->sandbox.runtime;

    if ((!l->ask.code && l->kind != NK_EXEC_CONTEXT_NEW) || !name)
        return 0;
    *out = nk_runtimes_find(l->api->runs.runtimes, name);
    return *out ? 0 : nk_fail(err, NK_BAD_LANGUAGE, "there is no language %.80s here", name);
}

static int start_run(struct nk_starter *l, struct nk_err *err)
{
    struct nk_run_request ask = {.cmd = &l->ask.cmd,
                                 .code = l->ask.code,
                                 .args = l->ask.args,
                                 .driver = l->kind == NK_EXEC_CONTEXT_NEW};
    const struct nk_run_config cfg = nk_whose_runs(l->api, l->owner);
    struct nk_context *context = NULL;

    if (ask.driver && nk_context_table_check(l->api->contexts, l->owner, err) < 0)
        return -1;
    if (l->ask.context) {
        context = nk_context_table_find(l->api->contexts, l->owner, l->ask.context);
        if (!context)
            return nk_fail(err, NK_NOT_FOUND, "no context %.80s", l->ask.context);
        ask.context = nk_context_info(context).language;
    } else if (find_runtime(l, &ask.runtime, err) < 0) {
        return -1;
    }
    if (nk_run_new(&cfg, &ask, &l->run, err) < 0)
        return -1;
    if (context)
        return wait_turn(l, context, err);
    nk_run_prepare(l->run, on_prepared, l);
    return 0;
}

static int run(struct nk_starter *l, const struct nk_user *user, struct nk_err *err)
{
    l->ask.cmd.user = user;
    l->ask.cmd.owner = l->owner;
    if (l->ask.code || l->ask.report_files || l->kind == NK_EXEC_CONTEXT_NEW)
        return start_run(l, err);
    return launch(l, &l->ask.cmd, err);
}

static void look_up(struct nk_job *job)
{
    struct nk_starter *l = NK_CONTAINER_OF(job, struct nk_starter, job);

    if (nk_userdb_find("/", l->spec, &l->user, &l->err) == 0)
        l->err.code = NK_OK;
    else if (l->err.code == NK_NOT_FOUND) /* a field of the request, not its resource */
        (void)nk_fail(&l->err, NK_BAD_REQUEST, "there is no user %s", l->spec);
}

static int run_as(struct nk_starter *l, struct nk_err *err)
{
    const char *const *envp =
        nk_env_as(l->ask.cmd.envp, l->base_env, &l->user, nk_req_arena(l->req));

    if (!envp)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    l->ask.cmd.envp = envp;
    return run(l, &l->user, err);
}

static void on_looked_up(struct nk_job *job, bool canceled)
{
    struct nk_starter *l = NK_CONTAINER_OF(job, struct nk_starter, job);
    struct nk_err err = l->err;

    l->looking = false;
    if (!l->req) {
        nk_exec_request_fini(&l->ask);
        l->done(l, NULL);
        return;
    }
    if (canceled)
        (void)nk_fail(&err, NK_SHUTTING_DOWN, "the agent is ending");
    else if (err.code == NK_OK && run_as(l, &err) == 0)
        err.code = NK_OK;
    nk_exec_request_fini(&l->ask);
    if (l->run)
        return;
    if (err.code != NK_OK)
        nk_keys_drop(&l->use, &err);
    l->done(l, err.code == NK_OK ? NULL : &err);
}

static int set_terminal(struct nk_starter *l, struct nk_err *err)
{
    const char *const *envp;

    if (!l->ask.cmd.tty)
        return 0;
    envp = nk_env_on_terminal(l->ask.cmd.envp, nk_req_arena(l->req));
    if (!envp)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    l->ask.cmd.envp = envp;
    return 0;
}

static int find_user(struct nk_starter *l, struct nk_err *err)
{
    int rc;

    if (l->ask.user) {
        l->spec = l->ask.user;
        l->looking = true;
        l->job.work = look_up;
        l->job.done = on_looked_up;
        l->job.share = l->owner;
        nk_job_submit(l->api->jobs, &l->job);
        return 0;
    }
    rc = run(l, nk_whose_of(l->req).user, err);
    nk_exec_request_fini(&l->ask);
    return rc;
}

static int check_room(struct nk_starter *l, struct nk_err *err)
{
    struct nk_quota *quota = nk_whose_of(l->req).quota;

    if (nk_quota_check(quota, err) == 0) {
        nk_quota_watch_add(l->api->quota_watch, quota);
        return find_user(l, err);
    }
    nk_exec_request_fini(&l->ask);
    return -1;
}

/* Of a request that is over nothing is heard: it left. */
static void on_known(struct nk_quota_ask *ask)
{
    struct nk_starter *l = NK_CONTAINER_OF(ask, struct nk_starter, room);
    struct nk_err err = {0};

    l->asking = false;
    if (check_room(l, &err) == 0 && (l->looking || l->run))
        return;
    if (err.code != NK_OK)
        nk_keys_drop(&l->use, &err);
    l->done(l, err.code == NK_OK ? NULL : &err);
}

static int begin(struct nk_starter *l, struct nk_err *err)
{
    if (set_terminal(l, err) < 0) {
        nk_exec_request_fini(&l->ask);
        return -1;
    }
    l->room.told = on_known;
    l->asking = !nk_quota_know(nk_whose_of(l->req).quota, &l->room);
    return l->asking ? 0 : check_room(l, err);
}

static void on_ready(struct nk_key_use *use, struct nk_process *p, const struct nk_err *err)
{
    struct nk_starter *l = NK_CONTAINER_OF(use, struct nk_starter, use);

    if (p) {
        keep(l, p);
        l->joined(l, p);
        return;
    }
    l->done(l, err);
}

static int start_first(struct nk_starter *l, const struct nk_json *object, struct nk_err *err)
{
    struct nk_api_settings set;

    if (nk_whose_settings(l->req, &set, err) < 0 ||
        nk_exec_request_read(object, l->kind, &set, nk_req_arena(l->req), &l->ask, err) < 0)
        return -1;
    l->base_env = set.env;
    if (l->feeds && (l->ask.cmd.stdin_given || l->ask.cmd.stdin_open)) {
        nk_exec_request_fini(&l->ask);
        return nk_fail(err, NK_BAD_REQUEST, "stdin is given twice");
    }
    if (l->kind == NK_EXEC_CONTEXT || l->kind == NK_EXEC_CONTEXT_STREAM)
        l->ask.context = nk_req_param(l->req, "id");
    l->ask.cmd.stdin_open |= l->feeds;
    l->ask.cmd.capture = l->capture;
    l->survives = l->survives || l->ask.detach || l->kind == NK_EXEC_PROCESS;
    return begin(l, err);
}

static int prepare(struct nk_starter *l, struct nk_req *req, struct nk_err *err)
{
    l->api = nk_req_app(req);
    l->req = req;
    l->owner = nk_req_identity(req);
    if (!l->api->kernel->complete)
        return nk_fail(err, NK_STARTING, "the self-test of the sandbox is not over");
    return 0;
}

static void note_claim(struct nk_starter *l, enum nk_key_claim claim)
{
    l->survives = claim != NK_KEY_NONE;
    l->repeat = claim == NK_KEY_REPEAT;
}

int nk_starter_run(struct nk_starter *l, struct nk_req *req, struct nk_err *err)
{
    const struct nk_json *object = nk_req_json(req);
    enum nk_key_claim claim;

    l->use.ready = on_ready;
    if (prepare(l, req, err) < 0 || nk_keys_claim(l->api->keys, req, &l->use, &claim, err) < 0)
        return -1;
    note_claim(l, claim);
    if (l->repeat || start_first(l, object, err) == 0)
        return 0;
    nk_keys_drop(&l->use, err);
    return -1;
}

int nk_starter_claim(struct nk_starter *l, struct nk_req *req, struct nk_err *err)
{
    enum nk_key_claim claim;

    l->use.ready = on_ready;
    if (prepare(l, req, err) < 0 ||
        nk_keys_claim_early(l->api->keys, req, &l->use, &claim, err) < 0)
        return -1;
    note_claim(l, claim);
    return 0;
}

int nk_starter_run_late(struct nk_starter *l, struct nk_req *req, const struct nk_json *object,
                        struct nk_err *err)
{
    if (prepare(l, req, err) == 0 && start_first(l, object, err) == 0)
        return 0;
    nk_keys_drop(&l->use, err);
    return -1;
}

bool nk_starter_drop(struct nk_starter *l)
{
    l->req = NULL;
    if (!l->run || !l->use.digested) /* a run that goes on binds its key yet */
        nk_keys_leave(&l->use);
    if (l->kept)
        nk_registry_unhold(l->kept);
    l->kept = NULL;
    if (l->made)
        nk_context_unref(l->made);
    l->made = NULL;
    if (l->waits && !l->survives) {
        l->waits = false;
        nk_context_leave(&l->turn);
        nk_run_free(l->run);
        l->run = NULL;
    }
    if (l->run) {
        if (!l->survives && !l->waits)
            nk_run_stop(l->run);
        return false;
    }
    if (l->asking) {
        nk_quota_leave(&l->room);
        nk_exec_request_fini(&l->ask);
    }
    if (!l->looking)
        return true;
    nk_job_cancel(&l->job);
    return false;
}

void nk_starter_gone(const struct nk_starter *l)
{
    struct nk_process *p = l->watcher->process;

    if (p && p->state != NK_PROC_EXITED && !l->survives)
        nk_process_end(p, NK_REASON_CLIENT_GONE);
}
