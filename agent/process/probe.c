#include "process/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/creds.h"
#include "base/err.h"
#include "base/scope.h"
#include "process/cgroups.h"
#include "process/sockdiag.h"
#include "process/trials.h"

#define LANDLOCK_VERSION 1u /* flag of landlock_create_ruleset: only tells the version */
#define NOBODY 65534

static const char *const names[NK_MECH_COUNT] = {
    [NK_MECH_OPENAT2] = "openat2",
    [NK_MECH_CLOSE_RANGE] = "close_range",
    [NK_MECH_PIDFD] = "pidfd",
    [NK_MECH_SUBREAPER] = "subreaper",
    [NK_MECH_CGROUP] = "cgroup",
    [NK_MECH_LANDLOCK] = "landlock",
    [NK_MECH_TERMINAL] = "terminal",
    [NK_MECH_TERMINAL_SIGNALS] = "terminal_signals",
    [NK_MECH_TERMINAL_EOF] = "terminal_eof",
    [NK_MECH_SOCK_DIAG] = "sock_diag",
    [NK_MECH_SECCOMP] = "seccomp",
    [NK_MECH_UID_DROP] = "uid_drop",
    [NK_MECH_THREAD_IDS] = "thread_ids",
    [NK_MECH_MARK] = "mark",
    [NK_MECH_KILL_TREE] = "kill_tree",
    [NK_MECH_PEER_CREDS] = "peer_creds",
    [NK_MECH_PROC] = "proc",
    [NK_MECH_IDENTITIES] = "identities",
};

const char *nk_probe_name(enum nk_mech m)
{
    return names[m];
}

int nk_probe_mech(const char *name)
{
    for (int m = 0; m < NK_MECH_COUNT; m++) {
        if (strcmp(names[m], name) == 0)
            return m;
    }
    return -1;
}

static void set_reason(struct nk_kernel *k, enum nk_mech m, const char *reason)
{
    k->mech[m].available = *reason == '\0';
    (void)snprintf(k->mech[m].reason, sizeof k->mech[m].reason, "%s", reason);
}

static void set_result(struct nk_kernel *k, enum nk_mech m, int rc)
{
    set_reason(k, m, rc < 0 ? nk_err_errno_name(-rc) : "");
}

static void disable(struct nk_kernel *k, uint32_t without)
{
    for (int m = 0; m < NK_MECH_COUNT; m++) {
        if (without & 1u << m)
            set_reason(k, (enum nk_mech)m, "disabled by --without");
    }
}

/* The result of a call that gives a descriptor, which nobody needs. */
static int closed(long fd)
{
    if (fd < 0)
        return -errno;
    (void)close((int)fd);
    return 0;
}

static int try_openat2(void)
{
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    nk_auto_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    return closed(syscall(SYS_openat2, root, ".", &how, sizeof how));
}

static int try_close_range(void)
{
    const unsigned unused = (unsigned)INT32_MAX;

    return syscall(SYS_close_range, unused, unused, 0u) < 0 ? -errno : 0;
}

static int try_pidfd(void)
{
    nk_auto_fd int fd = (int)syscall(SYS_pidfd_open, getpid(), 0u);

    if (fd < 0)
        return -errno;
    return syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0u) < 0 ? -errno : 0;
}

static int try_subreaper(void)
{
    int now;

    return prctl(PR_GET_CHILD_SUBREAPER, &now) < 0 ? -errno : 0;
}

static int try_landlock(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_VERSION) < 0 ? -errno : 0;
}

static int try_sock_diag(void)
{
    int found = nk_sockdiag_listening(0, NULL, 0);

    return found < 0 ? found : 0;
}

static int try_proc(void)
{
    return closed(open("/proc/self/status", O_PATH | O_CLOEXEC));
}

void nk_probe_quick(struct nk_kernel *k, uint32_t without)
{
    k->complete = false;
    for (int m = 0; m < NK_MECH_COUNT; m++)
        set_reason(k, (enum nk_mech)m, "not tested yet");
    set_reason(k, NK_MECH_IDENTITIES, "not asked for: --identities");
    set_result(k, NK_MECH_OPENAT2, try_openat2());
    set_result(k, NK_MECH_CLOSE_RANGE, try_close_range());
    set_result(k, NK_MECH_PIDFD, try_pidfd());
    set_result(k, NK_MECH_SUBREAPER, try_subreaper());
    set_result(k, NK_MECH_LANDLOCK, try_landlock());
    set_result(k, NK_MECH_SOCK_DIAG, try_sock_diag());
    set_result(k, NK_MECH_PROC, try_proc());
    disable(k, without);
}

/* A failed call, a call that succeeded and should not have (1), or a trial that was killed (-1). */
static void set_trial(struct nk_kernel *k, enum nk_mech m, int rc, const char *wrong)
{
    if (rc == NK_TRIAL_WRONG)
        set_reason(k, m, wrong);
    else
        set_result(k, m, rc);
}

static void probe_ids(struct nk_kernel *k, const struct nk_creds *as)
{
    static const enum nk_mech with_root[] = {NK_MECH_UID_DROP, NK_MECH_THREAD_IDS, NK_MECH_MARK,
                                             NK_MECH_PEER_CREDS};

    if (geteuid() != 0) {
        for (size_t i = 0; i < NK_COUNT(with_root); i++)
            set_reason(k, with_root[i], "not root");
        return;
    }
    set_trial(k, NK_MECH_UID_DROP, nk_trials_uid_drop(as), "root could be regained");
    set_trial(k, NK_MECH_THREAD_IDS, nk_trials_thread_ids(as), "a thread's ids are not judged");
    set_trial(k, NK_MECH_MARK, nk_trials_mark(), "groups are not shown in /proc");
    set_trial(k, NK_MECH_PEER_CREDS, nk_trials_peer_creds(as), "the kernel names a wrong user");
}

static void probe_terminal(struct nk_kernel *k)
{
    set_trial(k, NK_MECH_TERMINAL, nk_trials_terminal(), "");
    set_trial(k, NK_MECH_TERMINAL_SIGNALS, nk_trials_terminal_signals(),
              "the agent sends SIGWINCH and SIGHUP");
    set_trial(k, NK_MECH_TERMINAL_EOF, nk_trials_terminal_eof(), "the agent sends SIGHUP after it");
}

static void conclude_kill_tree(struct nk_kernel *k)
{
    char reason[sizeof k->mech[0].reason];

    reason[0] = '\0';
    if (!nk_has(k, NK_MECH_MARK))
        (void)snprintf(reason, sizeof reason, "no mark: %.40s", k->mech[NK_MECH_MARK].reason);
    else if (!nk_has(k, NK_MECH_PROC))
        (void)snprintf(reason, sizeof reason, "no /proc");
    set_reason(k, NK_MECH_KILL_TREE, reason);
}

/* What they are for is found by its mark, which only root can give. */
void nk_probe_groups(struct nk_kernel *k, uint32_t without, struct nk_cgroups *out)
{
    if (without & 1u << NK_MECH_CGROUP)
        set_reason(k, NK_MECH_CGROUP, "disabled by --without");
    else if (geteuid() != 0)
        set_reason(k, NK_MECH_CGROUP, "not root");
    else
        set_result(k, NK_MECH_CGROUP, nk_cgroups_open(out));
}

void nk_probe_slow(struct nk_kernel *k, uint32_t without, const struct nk_creds *as)
{
    struct nk_creds user = {.uid = NOBODY, .gid = NOBODY};

    /* What root runs as root says nothing about dropping rights. */
    if (as->uid != 0)
        user = *as;
    set_trial(k, NK_MECH_SECCOMP, nk_trials_seccomp(), "a filter denies nothing");
    probe_ids(k, &user);
    probe_terminal(k);
    disable(k, without);
    conclude_kill_tree(k);
    disable(k, without);
    k->complete = true;
}

void nk_probe_set(struct nk_kernel *k, enum nk_mech m, const char *reason)
{
    set_reason(k, m, reason);
}

int nk_probe_user(const struct nk_creds *as)
{
    int rc = nk_trials_uid_drop(as);

    if (rc == 0)
        rc = nk_trials_thread_ids(as);
    return rc == NK_TRIAL_WRONG ? -EPERM : rc;
}
