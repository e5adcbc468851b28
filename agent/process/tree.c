#include "process/tree.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "process/heard.h"
#include "process/procfs.h"

#define PLAIN_PASSES 3 /* of a kill; whoever is then left over may be growing */

struct entry {
    pid_t pid, parent, session;
    bool still;
    bool member;
};

struct table {
    struct entry *item; /* owned */
    size_t count, cap;
};

struct range {
    gid_t first;
    unsigned count;
    const uint8_t *which; /* NULL: all */
    gid_t found;
};

static bool in_range(gid_t gid, void *ctx)
{
    struct range *r = ctx;

    if (gid < r->first || gid - r->first >= r->count || (r->which && !r->which[gid - r->first]))
        return false;
    r->found = gid;
    return true;
}

static bool is_one_of(const char *status, const struct nk_uid_set *set)
{
    unsigned uids[4];

    if (!nk_procfs_uids(status, uids))
        return false;
    for (int i = 0; i < 4; i++)
        if (nk_uid_set_has(set, uids[i]))
            return true;
    return false;
}

static bool belongs(int proc, const char *pid, const struct nk_tree *t, bool moves)
{
    struct range marks = {t->mark, t->marks > 0 ? t->marks : 1, t->which, 0};
    char status[NK_PROCFS_STATUS_MAX];

    if (nk_procfs_read(proc, pid, "status", status, sizeof status) <= 0 ||
        nk_procfs_is_dead(status) || (moves && nk_procfs_stands_still(proc, pid, status)))
        return false;
    if (t->uids && is_one_of(status, t->uids))
        return true;
    return t->mark && nk_procfs_each_group(status, in_range, &marks);
}

static bool is_left_out(const struct nk_tree *t, pid_t pid)
{
    return t->but != 0 && getpgid(pid) == t->but;
}

static bool signal_marked(const struct nk_tree *t, int proc, const char *name,
                          struct nk_heard *heard)
{
    nk_auto_fd int pidfd = -1;
    pid_t pid = (pid_t)strtol(name, NULL, 10);

    if (pid == getpid() || is_left_out(t, pid) || !belongs(proc, name, t, heard->moves))
        return false;
    if (t->pidfd && heard->signo != 0) {
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pidfd >= 0 && !belongs(proc, name, t, heard->moves))
            return false;
    }
    nk_heard_tell(heard, proc, pidfd, pid);
    return true;
}

static int signal_by_mark(const struct nk_tree *t, DIR *dir, struct nk_heard *heard)
{
    const char *name;
    int found = 0;

    while ((name = nk_procfs_next(dir)))
        found += signal_marked(t, dirfd(dir), name, heard);
    return found;
}

static bool read_entry(int proc, const char *name, struct entry *out)
{
    char stat[1024];
    const char *at;
    char state;
    int parent, group, session, threads = 0;

    if (nk_procfs_read(proc, name, "stat", stat, sizeof stat) <= 0)
        return false;
    at = strrchr(stat, ')'); /* the name before it may hold anything */
    if (!at || sscanf(at, ") %c %d %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d",
                      &state, &parent, &group, &session, &threads) < 4)
        return false;
    if (state == 'X' || (state == 'Z' && threads <= 1))
        return false;
    *out = (struct entry){(pid_t)strtol(name, NULL, 10), parent, session, state == 'T', false};
    return true;
}

static int read_table(DIR *dir, struct table *t)
{
    const char *name;

    while ((name = nk_procfs_next(dir))) {
        if (t->count == t->cap) {
            size_t cap = t->cap ? t->cap * 2 : 64;
            struct entry *item = realloc(t->item, cap * sizeof *item);

            if (!item)
                return -ENOMEM;
            t->item = item;
            t->cap = cap;
        }
        if (read_entry(dirfd(dir), name, &t->item[t->count]))
            t->count++;
    }
    return 0;
}

static bool has_member(const struct table *t, pid_t pid)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->item[i].pid == pid)
            return t->item[i].member;
    return false;
}

static bool leads(const struct nk_tree *t, pid_t pid)
{
    for (size_t i = 0; i < t->leader_count; i++)
        if (t->leaders[i] == pid)
            return true;
    return t->leader_count == 0 && pid == t->leader;
}

/* Marks the sessions of the leaders, then children of members until nothing is added. */
static void mark_members(const struct nk_tree *tree, struct table *t)
{
    bool more = true;

    for (size_t i = 0; i < t->count; i++)
        t->item[i].member = leads(tree, t->item[i].pid) || leads(tree, t->item[i].session);
    while (more) {
        more = false;
        for (size_t i = 0; i < t->count; i++) {
            struct entry *e = &t->item[i];

            if (!e->member && has_member(t, e->parent)) {
                e->member = true;
                more = true;
            }
        }
    }
}

static int signal_by_session(const struct nk_tree *t, DIR *dir, struct nk_heard *heard)
{
    nk_auto_free struct entry *item = NULL;
    struct table table = {0};
    int found = 0;
    int rc = read_table(dir, &table);

    item = table.item;
    if (rc < 0)
        return rc;
    mark_members(t, &table);
    for (size_t i = 0; i < table.count; i++) {
        pid_t pid = table.item[i].pid;

        if (!table.item[i].member || pid == getpid() || is_left_out(t, pid) ||
            (heard->moves && table.item[i].still))
            continue;
        nk_heard_tell(heard, dirfd(dir), -1, pid);
        found++;
    }
    return found;
}

static int pass(const struct nk_tree *t, struct nk_heard *heard)
{
    DIR *dir = opendir("/proc");
    int found;

    if (!dir)
        return -errno;
    found = t->mark || t->uids ? signal_by_mark(t, dir, heard) : signal_by_session(t, dir, heard);
    (void)closedir(dir);
    return found;
}

static int pass_once(const struct nk_tree *t, int signo, bool moves)
{
    struct nk_heard heard = {.signo = signo, .moves = moves};
    int found = pass(t, &heard);

    nk_heard_fini(&heard);
    return found;
}

int nk_tree_signal(const struct nk_tree *t, int signo)
{
    struct nk_heard heard = {.signo = signo};
    int found = pass(t, &heard);

    if (found > 0 && nk_heard_settle(&heard))
        (void)pass(t, &heard);
    nk_heard_fini(&heard);
    return found;
}

/* Who dies makes room for one who is born: of a bomb all are stopped first, at its limit then. Those
 * who are dying already do not stop: no fewer than before is as many as it gets. */
static void hold_still(const struct nk_tree *t, uint64_t until_ms)
{
    int last = INT_MAX;

    while (nk_clock_mono_ms() <= until_ms) {
        int found = pass_once(t, SIGSTOP, true);

        if (found <= 0 || found >= last)
            return;
        last = found;
    }
}

int nk_tree_kill(const struct nk_tree *t, uint64_t deadline_ms)
{
    uint64_t until = nk_clock_mono_ms() + deadline_ms;
    int quiet = 0;

    for (int i = 0; quiet < 2; i++) {
        int found;

        if (i >= PLAIN_PASSES)
            hold_still(t, until);
        found = nk_tree_signal(t, SIGKILL);

        if (found < 0 && found != -ENOMEM)
            return found;
        quiet = found == 0 ? quiet + 1 : 0;
        if (quiet < 2 && nk_clock_mono_ms() > until)
            return -ETIMEDOUT;
        if (found > 0)
            (void)poll(NULL, 0, i < PLAIN_PASSES ? 1 : 5); /* let the killed ones die first */
    }
    return 0;
}

struct alive {
    gid_t first;
    unsigned count;
    uint8_t *byte; /* borrowed */
};

static bool note_alive(gid_t gid, void *ctx)
{
    struct alive *a = ctx;

    if (gid < a->first || gid - a->first >= a->count)
        return false;
    a->byte[gid - a->first] = 1;
    return true;
}

int nk_tree_alive(gid_t first, unsigned count, uint8_t *alive)
{
    struct alive a = {first, count, alive};
    DIR *dir = opendir("/proc");
    const char *name;
    char status[NK_PROCFS_STATUS_MAX];

    if (!dir)
        return -errno;
    memset(alive, 0, count);
    while ((name = nk_procfs_next(dir)))
        if (nk_procfs_read(dirfd(dir), name, "status", status, sizeof status) > 0 &&
            !nk_procfs_is_dead(status))
            (void)nk_procfs_each_group(status, note_alive, &a);
    (void)closedir(dir);
    return 0;
}

int nk_tree_each(gid_t first, unsigned count, nk_tree_fn fn, void *ctx)
{
    DIR *dir = opendir("/proc");
    char status[NK_PROCFS_STATUS_MAX];
    const char *name;

    if (!dir)
        return -errno;
    while ((name = nk_procfs_next(dir))) {
        struct range r = {first, count, NULL, 0};
        pid_t pid = (pid_t)strtol(name, NULL, 10);

        if (pid == getpid() ||
            nk_procfs_read(dirfd(dir), name, "status", status, sizeof status) <= 0)
            continue;
        if (!nk_procfs_is_dead(status) && nk_procfs_each_group(status, in_range, &r))
            fn(dirfd(dir), pid, r.found, ctx);
    }
    (void)closedir(dir);
    return 0;
}

struct nk_tree_holder nk_tree_holder_of(int proc, const char *pid, gid_t first, unsigned count)
{
    struct range r = {first, count, NULL, 0};
    struct entry e;
    char status[NK_PROCFS_STATUS_MAX];

    if (!read_entry(proc, pid, &e) ||
        nk_procfs_read(proc, pid, "status", status, sizeof status) <= 0)
        return (struct nk_tree_holder){0};
    (void)nk_procfs_each_group(status, in_range, &r);
    return (struct nk_tree_holder){true, r.found, e.session};
}

int nk_tree_users(uid_t first, unsigned count, uint8_t *alive)
{
    DIR *dir = opendir("/proc");
    const char *name;
    char status[NK_PROCFS_STATUS_MAX];

    if (!dir)
        return -errno;
    memset(alive, 0, count);
    while ((name = nk_procfs_next(dir))) {
        unsigned uids[4];

        if (nk_procfs_read(dirfd(dir), name, "status", status, sizeof status) <= 0 ||
            nk_procfs_is_dead(status) || !nk_procfs_uids(status, uids))
            continue;
        for (int i = 0; i < 4; i++)
            if (uids[i] >= first && uids[i] - first < count)
                alive[uids[i] - first] = 1;
    }
    (void)closedir(dir);
    return 0;
}

int nk_tree_freeze(gid_t first, unsigned count, bool freeze, uint64_t deadline_ms)
{
    const struct nk_tree all = {.mark = first, .marks = count};
    uint64_t until = nk_clock_mono_ms() + deadline_ms;
    int least = freeze ? 2 : 1;
    int quiet = 0;

    while (quiet < least) {
        int found = pass_once(&all, freeze ? SIGSTOP : SIGCONT, freeze);

        if (found < 0)
            return found;
        quiet = found == 0 || !freeze ? quiet + 1 : 0;
        if (quiet < least && nk_clock_mono_ms() > until)
            return -ETIMEDOUT;
        if (found > 0 && freeze)
            (void)poll(NULL, 0, 1); /* let them stop before looking again */
    }
    return 0;
}
