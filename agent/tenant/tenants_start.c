/* Before the first identity is opened: whether they can be isolated, and what was left behind. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/job.h"
#include "base/log.h"
#include "base/scope.h"
#include "process/probe.h"
#include "tenant/tenants_private.h"

/* A user's way to its workspace leads through folders that the deployer made. */
static int try_to_reach(const struct nk_tenants *t, const struct nk_creds *as)
{
    char path[256];
    nk_auto_fd int fd = -1;
    int rc = nk_job_become(as);

    if (rc < 0)
        return rc;
    (void)snprintf(path, sizeof path, "%s/w", t->cfg.state_dir);
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    rc = fd < 0 || faccessat(fd, ".", X_OK, AT_EACCESS) < 0 ? -errno : 0;
    nk_job_restore();
    return rc;
}

/* What is missing of `kernel`, or empty. */
static void judge(const struct nk_tenants *t, const struct nk_kernel *kernel, char *reason,
                  size_t size)
{
    static const enum nk_mech needed[] = {NK_MECH_UID_DROP, NK_MECH_THREAD_IDS, NK_MECH_MARK,
                                          NK_MECH_PROC};
    const uid_t ends[] = {t->cfg.uid_first, t->cfg.uid_last};

    reason[0] = '\0';
    for (size_t i = 0; i < NK_COUNT(needed) && reason[0] == '\0'; i++)
        if (!nk_has(kernel, needed[i]))
            (void)snprintf(reason, size, "%s: %.60s", nk_probe_name(needed[i]),
                           kernel->mech[needed[i]].reason);
    for (size_t i = 0; i < NK_COUNT(ends) && reason[0] == '\0'; i++) {
        const struct nk_creds as = {.uid = ends[i], .gid = ends[i]};
        int rc = nk_probe_user(&as);

        if (rc == 0)
            rc = try_to_reach(t, &as);
        if (rc < 0)
            (void)snprintf(reason, size, "uid %u cannot be used: %s", (unsigned)as.uid,
                           nk_err_errno_name(-rc));
    }
}

/* Uids that were given out are ours, whoever runs as them. */
static void kill_left(struct nk_tenants *t, const struct nk_kernel *kernel)
{
    const struct nk_uid_set given = {t->cfg.uid_first, t->count, t->swept};
    const struct nk_tree all = {.mark = t->cfg.mark_first,
                                .marks = t->cfg.mark_last - t->cfg.mark_first + 1,
                                .pidfd = nk_has(kernel, NK_MECH_PIDFD),
                                .uids = &given};

    if (nk_tree_kill(&all, NK_TENANTS_KILL_MS) < 0)
        nk_log_msg(NK_LOG_WARN, "left_running", "what ran before could not all be killed");
}

/* A child that was between its clone and its exec when its daemon died was nobody's yet. */
static void kill_late(const struct nk_tenants *t)
{
    const struct nk_uid_set given = {t->cfg.uid_first, t->count, t->swept};
    const struct nk_tree all = {.pidfd = nk_has(t->cfg.kernel, NK_MECH_PIDFD), .uids = &given};

    (void)nk_tree_kill(&all, NK_TENANTS_KILL_MS);
}

void nk_tenants_try(struct nk_tenants *t, struct nk_kernel *kernel)
{
    char reason[sizeof kernel->mech[0].reason];

    judge(t, kernel, reason, sizeof reason);
    nk_probe_set(kernel, NK_MECH_IDENTITIES, reason);
    if (reason[0] != '\0')
        return;
    nk_state_try_alone(&t->state);
    if (t->state.alone)
        kill_left(t, kernel);
    (void)nk_tree_users(t->cfg.uid_first, t->count, t->barred);
}

/* Those that have no workspace: whatever they left is from another life. */
static void choose_uids(struct nk_tenants *t)
{
    for (unsigned i = 0; i < t->count; i++)
        t->swept[i] = !t->barred[i] && !nk_state_has(&t->state, t->cfg.uid_first + i);
    t->set = (struct nk_uid_set){t->cfg.uid_first, t->count, t->swept};
    t->sweep = (struct nk_sweep){.folders = t->cfg.shared, .uids = &t->set};
}

static int sweep_slice(struct nk_task *task)
{
    struct nk_tenants *t = NK_CONTAINER_OF(task, struct nk_tenants, task);

    if (t->state.alone && !t->set.member) {
        kill_late(t);
        nk_state_tidy(&t->state);
        choose_uids(t);
        (void)nk_sweep_ipc(&t->set);
    }
    if (t->state.alone && nk_sweep_go(&t->sweep, task->until_ns) > 0)
        return NK_TASK_MORE;
    (void)nk_state_share(&t->state);
    return 0;
}

static void on_swept(struct nk_task *task)
{
    struct nk_tenants *t = NK_CONTAINER_OF(task, struct nk_tenants, task);

    if (!t->stopped)
        nk_tenants_go_on(t);
}

void nk_tenants_begin(struct nk_tenants *t)
{
    t->task.slice = sweep_slice;
    t->task.over = on_swept;
    nk_task_start(&t->task, t->cfg.jobs, NULL, NULL);
}

void nk_tenants_kill(struct nk_tenants *t)
{
    const struct nk_uid_set ours = {t->cfg.uid_first, t->count, t->swept};
    const struct nk_tree all = {.pidfd = nk_has(t->cfg.kernel, NK_MECH_PIDFD), .uids = &ours};

    memset(t->swept, 0, t->count);
    for (size_t i = 0; i < NK_TENANTS_BUCKETS; i++)
        for (const struct nk_list *n = t->bucket[i].next; n != &t->bucket[i]; n = n->next) {
            const struct nk_tenant *one = nk_list_entry(n, const struct nk_tenant, bucket);

            if (one->open)
                t->swept[one->user.creds.uid - t->cfg.uid_first] = 1;
        }
    nk_state_try_alone(&t->state);
    if (t->state.alone)
        (void)nk_tree_kill(&all, NK_TENANTS_KILL_MS);
}
