#include "process/heard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "process/procfs.h"

#define GROUPS_MAX 4096   /* signalled as a whole in one pass; members of further ones one by one */
#define HEARERS_MAX 65536 /* remembered; children of further ones are not looked for */
#define SETTLE_MS 100 /* what a start takes is a millisecond; who blocks it for good gets this */

struct look {
    bool pending, blocked;
    pid_t parent;
};

void nk_heard_fini(struct nk_heard *h)
{
    free(h->group);
    free(h->hearer);
    *h = (struct nk_heard){0};
}

static bool look_at(int proc, pid_t pid, int signo, struct look *out)
{
    char status[NK_PROCFS_STATUS_MAX], name[24];
    const char *parent;

    (void)snprintf(name, sizeof name, "%d", (int)pid);
    if (nk_procfs_read(proc, name, "status", status, sizeof status) <= 0 ||
        nk_procfs_is_dead(status))
        return false;
    parent = nk_procfs_field(status, "\nPPid:\t");
    out->pending = nk_procfs_has_signal(status, "\nShdPnd:\t", signo);
    out->blocked = nk_procfs_has_signal(status, "\nSigBlk:\t", signo);
    out->parent = parent ? (pid_t)strtol(parent, NULL, 10) : 0;
    return true;
}

static bool can_be_held_back(int signo)
{
    return signo != 0 && signo != SIGKILL && signo != SIGSTOP && signo != SIGCONT;
}

/* Room for one more of `size`, up to `max` of them. */
static bool make_room(void **array, size_t count, size_t *cap, size_t size, size_t max)
{
    size_t more = *cap ? *cap * 2 : 64;
    void *grown;

    if (count < *cap)
        return true;
    grown = more > max ? NULL : realloc(*array, more * size);
    if (!grown)
        return false;
    *array = grown;
    *cap = more;
    return true;
}

static struct nk_hearer *find(const struct nk_heard *h, pid_t pid)
{
    for (size_t i = h->count; i > 0; i--)
        if (h->hearer[i - 1].pid == pid)
            return &h->hearer[i - 1];
    return NULL;
}

static void remember(struct nk_heard *h, pid_t pid, bool held_back)
{
    void *array = h->hearer;

    if (make_room(&array, h->count, &h->cap, sizeof *h->hearer, HEARERS_MAX)) {
        h->hearer = array;
        h->hearer[h->count++] = (struct nk_hearer){pid, held_back};
    }
}

static void send_signal(const struct nk_heard *h, int pidfd, pid_t pid)
{
    if (pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, pidfd, h->signo, NULL, 0);
    else
        (void)kill(pid, h->signo);
}

/* Members of a group mostly come one after the other. */
static bool is_told(const struct nk_heard *h, pid_t group)
{
    for (size_t i = h->group_count; i > 0; i--)
        if (h->group[i - 1] == group)
            return true;
    return false;
}

/* False: it is to be signalled by itself. A session of its own holds processes of its tree only. */
static bool tell_group(struct nk_heard *h, int pidfd, pid_t pid)
{
    pid_t group = getpgid(pid);
    void *array = h->group;

    if (group <= 1 || getsid(pid) == getsid(0))
        return false;
    if (is_told(h, group))
        return true;
    if (!make_room(&array, h->group_count, &h->group_cap, sizeof group, GROUPS_MAX))
        return false;
    h->group = array;
    if (pidfd >= 0 && syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) != 0)
        return false;
    (void)kill(-group, h->signo);
    h->group[h->group_count++] = group;
    return true;
}

static void tell_first(struct nk_heard *h, int proc, int pidfd, pid_t pid)
{
    struct look look = {0};
    bool held_back =
        can_be_held_back(h->signo) && look_at(proc, pid, h->signo, &look) && look.blocked;

    if (!tell_group(h, pidfd, pid))
        send_signal(h, pidfd, pid);
    if (can_be_held_back(h->signo))
        remember(h, pid,
                 held_back ||
                     (look_at(proc, pid, h->signo, &look) && look.pending && look.blocked));
}

/* Who was started by one that had heard it is no target: a trap may do its last work so. Nor is what
 * such a one starts in turn. An orphan was left by one that died of it. */
static void tell_later(struct nk_heard *h, int proc, int pidfd, pid_t pid)
{
    const struct nk_hearer *parent;
    struct look look;

    if (find(h, pid) || !look_at(proc, pid, h->signo, &look))
        return;
    parent = find(h, look.parent);
    if (!parent || parent->held_back)
        send_signal(h, pidfd, pid);
    remember(h, pid, parent && parent->held_back);
}

void nk_heard_tell(struct nk_heard *h, int proc, int pidfd, pid_t pid)
{
    if (h->signo == 0)
        return;
    if (h->later)
        tell_later(h, proc, pidfd, pid);
    else
        tell_first(h, proc, pidfd, pid);
}

static bool somebody_holds_back(const struct nk_heard *h)
{
    for (size_t i = 0; i < h->count; i++)
        if (h->hearer[i].held_back)
            return true;
    return false;
}

/* Whether somebody still has it before him. One that has read it, though it blocks it, has heard it
 * as others do who have a handler. */
static bool is_held_back(struct nk_heard *h, int proc)
{
    bool any = false;

    for (size_t i = 0; i < h->count; i++) {
        struct nk_hearer *one = &h->hearer[i];
        struct look look;

        if (!one->held_back || !look_at(proc, one->pid, h->signo, &look))
            continue;
        any = any || look.pending;
        one->held_back = look.pending || !look.blocked;
    }
    return any;
}

bool nk_heard_settle(struct nk_heard *h)
{
    uint64_t until = nk_clock_mono_ms() + SETTLE_MS;
    nk_auto_fd int proc = -1;

    if (!somebody_holds_back(h))
        return false;
    proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (proc >= 0 && is_held_back(h, proc) && nk_clock_mono_ms() < until)
        (void)poll(NULL, 0, 1);
    h->later = proc >= 0 && somebody_holds_back(h);
    return h->later;
}
