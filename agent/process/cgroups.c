#include "process/cgroups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/scope.h"
#include "process/cgroup_files.h"
#include "process/cgroup_place.h"

#define TEXT_MAX (128 * 1024) /* of /proc/self/mountinfo */
#define GROUPS_MAX 8192       /* of /proc/self/cgroup */
#define SWEEPS 20             /* looks at a folder whose processes were killed */
#define SWEEP_MS 10           /* between two of them */
#define AGENT ".agent"        /* ends the name of the daemon's own leaf */

static int open_folder(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static void kill_listed(int group)
{
    char text[4096];

    if (nk_cgroup_files_write(group, "cgroup.kill", "1") == 0 ||
        nk_cgroup_files_read(group, "cgroup.procs", text, sizeof text) < 0)
        return;
    for (char *at = text, *end; *at; at = end + (*end == '\n')) {
        long pid = strtol(at, &end, 10);

        if (end == at)
            return;
        if (pid > 0)
            (void)kill((pid_t)pid, SIGKILL);
    }
}

/* What is in a folder, read from its start whoever else reads it; NULL where it cannot be. */
static DIR *list(int folder)
{
    nk_auto_fd int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again < 0 ? NULL : fdopendir(again);

    if (dir)
        (void)nk_take_fd(&again);
    return dir;
}

static void remove_below(int group)
{
    DIR *dir = list(group);
    struct dirent *e;

    if (!dir)
        return;
    while ((e = readdir(dir)))
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            (void)unlinkat(group, e->d_name, AT_REMOVEDIR);
    (void)closedir(dir);
}

/* Who lives holds the lock of its folder, wherever its number means something. */
static void sweep_one(int base, const char *name)
{
    nk_auto_fd int group = open_folder(base, name);

    if (group < 0 || flock(group, LOCK_EX | LOCK_NB) < 0)
        return;
    for (int i = 0; i < SWEEPS; i++) {
        kill_listed(group);
        remove_below(group);
        if (unlinkat(base, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
            return;
        (void)poll(NULL, 0, SWEEP_MS);
    }
}

static void sweep(int base)
{
    DIR *dir = list(base);
    struct dirent *e;

    if (!dir)
        return;
    while ((e = readdir(dir)))
        if (strncmp(e->d_name, NK_CGROUP_NAME, strlen(NK_CGROUP_NAME)) == 0)
            sweep_one(base, e->d_name);
    (void)closedir(dir);
}

/* A folder that is ours by its lock. Between the two somebody may have swept it away. */
static int make_folder(int base, const char *name)
{
    struct stat made, now;
    nk_auto_fd int fd = -1;

    if (mkdirat(base, name, 0755) < 0 && errno != EEXIST)
        return -errno;
    fd = open_folder(base, name);
    if (fd < 0)
        return fd;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &made) < 0 ||
        fstatat(base, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return made.st_ino == now.st_ino ? nk_take_fd(&fd) : -EAGAIN;
}

/* Alone in our group, or its process 1, we may leave it: then it can have controllers. */
static int move_self(struct nk_cgroups *g, int base)
{
    char name[sizeof g->name + sizeof AGENT], text[4096], self[16];
    nk_auto_fd int leaf = -1;
    int rc = nk_cgroup_files_read(base, "cgroup.procs", text, sizeof text);

    (void)snprintf(self, sizeof self, "%d\n", (int)getpid());
    if (rc < 0 || (getpid() != 1 && strcmp(text, self) != 0))
        return rc < 0 ? rc : -EBUSY;
    (void)snprintf(name, sizeof name, "%s" AGENT, g->name);
    leaf = make_folder(base, name);
    if (leaf < 0)
        return leaf;
    g->lock = nk_take_fd(&leaf); /* also where not all can be moved: we may be in it then */
    for (char *at = text, *end; *at; at = end) {
        end = at + strcspn(at, "\n");
        end += *end == '\n';
        (void)snprintf(self, sizeof self, "%.*s", (int)(end - at), at);
        rc = nk_cgroup_files_write(g->lock, "cgroup.procs", self);
        if (rc < 0 && rc != -ESRCH) /* who has ended since needs no place */
            return rc;
    }
    return 0;
}

static void enable(struct nk_cgroups *g, int base)
{
    char text[256], wanted[32] = "";
    bool memory, pids;
    int rc = nk_cgroup_files_read(base, "cgroup.controllers", text, sizeof text);

    if (rc < 0)
        return;
    memory = nk_cgroup_files_lists(text, "memory");
    pids = nk_cgroup_files_lists(text, "pids");
    if (!memory && !pids)
        return;
    (void)snprintf(wanted, sizeof wanted, "%s %s", memory ? "+memory" : "", pids ? "+pids" : "");
    rc = nk_cgroup_files_write(base, "cgroup.subtree_control", wanted);
    if (rc == -EBUSY && move_self(g, base) == 0)
        rc = nk_cgroup_files_write(base, "cgroup.subtree_control", wanted);
    if (rc < 0)
        return;
    (void)nk_cgroup_files_write(g->unified, "cgroup.subtree_control", wanted);
    if (memory)
        g->memory = fcntl(g->unified, F_DUPFD_CLOEXEC, 3);
    if (pids)
        g->pids = fcntl(g->unified, F_DUPFD_CLOEXEC, 3);
}

static int open_unified(struct nk_cgroups *g)
{
    nk_auto_fd int base = open_folder(AT_FDCWD, g->base);

    if (base < 0)
        return base;
    sweep(base);
    g->unified = make_folder(base, g->name);
    if (g->unified < 0)
        return g->unified;
    enable(g, base);
    if (mkdirat(g->unified, "start", 0755) == 0)
        g->leaf = openat(g->unified, "start/cgroup.procs", O_WRONLY | O_CLOEXEC);
    return 0;
}

static void open_first_version(const struct nk_cgroups *g, const char *path, int *out_group,
                               int *out_tasks)
{
    nk_auto_fd int base = open_folder(AT_FDCWD, path);
    nk_auto_fd int group = -1;
    int tasks;

    if (base < 0)
        return;
    sweep(base);
    group = make_folder(base, g->name);
    if (group < 0)
        return;
    tasks = openat(group, "tasks", O_WRONLY | O_CLOEXEC);
    if (tasks < 0)
        return;
    *out_tasks = tasks;
    *out_group = nk_take_fd(&group);
}

static int fill(const char *path, char *text, size_t size)
{
    nk_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n = fd < 0 ? -1 : 1;

    while (n > 0 && len < size - 1) {
        n = read(fd, text + len, size - 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (n < 0)
        return -errno;
    text[len] = '\0';
    return 0;
}

/* A daemon that was started from another's leaf belongs beside that one. */
static void leave_leaf(char *path)
{
    char *last = strrchr(path, '/');
    size_t len = strlen(path);

    if (last && last != path && strncmp(last + 1, NK_CGROUP_NAME, strlen(NK_CGROUP_NAME)) == 0 &&
        len > strlen(AGENT) && strcmp(path + len - strlen(AGENT), AGENT) == 0)
        *last = '\0';
}

static int find_places(struct nk_cgroups *g)
{
    nk_auto_free char *mounts = malloc(TEXT_MAX);
    char groups[GROUPS_MAX];
    int rc = mounts ? fill("/proc/self/mountinfo", mounts, TEXT_MAX) : -ENOMEM;

    if (rc == 0)
        rc = fill("/proc/self/cgroup", groups, sizeof groups);
    if (rc < 0)
        return rc;
    rc = nk_cgroup_place_find(mounts, groups, NK_CGROUP_UNIFIED, g->base, sizeof g->base);
    if (rc == 0)
        leave_leaf(g->base);
    (void)nk_cgroup_place_find(mounts, groups, NK_CGROUP_MEMORY, g->base_memory,
                               sizeof g->base_memory);
    (void)nk_cgroup_place_find(mounts, groups, NK_CGROUP_PIDS, g->base_pids, sizeof g->base_pids);
    return rc;
}

static void forget(struct nk_cgroups *g)
{
    *g = (struct nk_cgroups){.lock = -1,
                             .unified = -1,
                             .leaf = -1,
                             .memory = -1,
                             .pids = -1,
                             .memory_tasks = -1,
                             .pids_tasks = -1};
}

int nk_cgroups_open(struct nk_cgroups *g)
{
    uint32_t random = 0;
    int rc;

    forget(g);
    rc = find_places(g);
    if (geteuid() != 0)
        return -EPERM;
    if (rc == 0 && getrandom(&random, sizeof random, 0) < 0)
        rc = -errno;
    (void)snprintf(g->name, sizeof g->name, NK_CGROUP_NAME "%08" PRIx32, random);
    if (rc == 0)
        rc = open_unified(g);
    if (rc < 0) {
        g->name[0] = '\0';
        return rc;
    }
    if (g->memory < 0 && *g->base_memory)
        open_first_version(g, g->base_memory, &g->memory, &g->memory_tasks);
    g->memory_v1 = g->memory_tasks >= 0;
    if (g->pids < 0 && *g->base_pids)
        open_first_version(g, g->base_pids, &g->pids, &g->pids_tasks);
    g->pids_v1 = g->pids_tasks >= 0;
    return 0;
}

static void remove_folder(const char *base, const char *name)
{
    nk_auto_fd int dir = *base ? open_folder(AT_FDCWD, base) : -1;
    nk_auto_fd int group = dir < 0 ? -1 : open_folder(dir, name);

    if (group < 0)
        return;
    remove_below(group);
    (void)unlinkat(dir, name, AT_REMOVEDIR);
}

void nk_cgroups_close(struct nk_cgroups *g)
{
    int *const fds[] = {&g->lock, &g->unified,      &g->leaf,      &g->memory,
                        &g->pids, &g->memory_tasks, &g->pids_tasks};

    if (!nk_cgroups_are_open(g))
        return;
    remove_folder(g->base, g->name);
    if (g->memory_v1)
        remove_folder(g->base_memory, g->name);
    if (g->pids_v1)
        remove_folder(g->base_pids, g->name);
    for (size_t i = 0; i < NK_COUNT(fds); i++)
        nk_close_fd(fds[i]);
    forget(g);
}

static int set_limit(int group, const char *name, const char *none, uint64_t value)
{
    char text[32];

    if (group < 0)
        return -ENOTSUP;
    if (value == 0)
        return nk_cgroup_files_write(group, name, none);
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    return nk_cgroup_files_write(group, name, text);
}

int nk_cgroups_limit_memory(const struct nk_cgroups *g, uint64_t bytes)
{
    return g->memory_v1 ? set_limit(g->memory, "memory.limit_in_bytes", "-1", bytes)
                        : set_limit(g->memory, "memory.max", "max", bytes);
}

int nk_cgroups_limit_processes(const struct nk_cgroups *g, uint64_t count)
{
    return set_limit(g->pids, "pids.max", "max", count);
}

unsigned nk_cgroups_enter(const struct nk_cgroups *g, int out[NK_CGROUP_ENTER_MAX])
{
    unsigned n = 0;

    if (!nk_cgroups_are_open(g))
        return 0;
    if (g->leaf >= 0 && ((g->memory_limited && !g->memory_v1) || (g->pids_limited && !g->pids_v1)))
        out[n++] = g->leaf;
    if (g->memory_v1 && g->memory_limited)
        out[n++] = g->memory_tasks;
    if (g->pids_v1 && g->pids_limited)
        out[n++] = g->pids_tasks;
    return n;
}
