#include "process/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"

ssize_t nk_procfs_read(int proc, const char *pid, const char *file, char *buf, size_t size)
{
    nk_auto_fd int fd = -1;
    char path[64];
    ssize_t n;

    (void)snprintf(path, sizeof path, "%s/%s", pid, file);
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    n = read(fd, buf, size - 1);
    if (n < 0)
        return -errno;
    buf[n] = '\0';
    return n;
}

const char *nk_procfs_field(const char *status, const char *name)
{
    const char *at = strstr(status, name);

    return at ? at + strlen(name) : NULL;
}

bool nk_procfs_is_dead(const char *status)
{
    const char *state = nk_procfs_field(status, "\nState:\t");
    const char *threads = nk_procfs_field(status, "\nThreads:\t");

    if (!state || *state == 'X')
        return true;
    return *state == 'Z' && (!threads || strtoul(threads, NULL, 10) <= 1);
}

/* Its first thread has ended; the others tell. */
static bool threads_stand_still(int proc, const char *pid)
{
    char path[64], stat[1024];
    nk_auto_fd int fd = -1;
    const char *tid, *at;
    DIR *dir;
    bool still = true;

    (void)snprintf(path, sizeof path, "%s/task", pid);
    fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir)
        (void)nk_take_fd(&fd);
    while (dir && still && (tid = nk_procfs_next(dir))) {
        if (nk_procfs_read(dirfd(dir), tid, "stat", stat, sizeof stat) <= 0)
            continue;
        at = strrchr(stat, ')'); /* the name before it may hold anything */
        still = !at || at[1] == '\0' || strchr("TtZX", at[2]) != NULL;
    }
    if (dir)
        (void)closedir(dir);
    return still;
}

bool nk_procfs_has_signal(const char *status, const char *name, int signo)
{
    const char *set = nk_procfs_field(status, name);

    return set && (strtoull(set, NULL, 16) >> (signo - 1) & 1);
}

bool nk_procfs_stands_still(int proc, const char *pid, const char *status)
{
    const char *state = nk_procfs_field(status, "\nState:\t");

    if (!state || *state == 'T' || *state == 't')
        return state != NULL;
    if (*state == 'Z')
        return threads_stand_still(proc, pid);
    return *state == 'D' && nk_procfs_has_signal(status, "\nShdPnd:\t", SIGSTOP);
}

bool nk_procfs_each_group(const char *status, bool (*fn)(gid_t gid, void *ctx), void *ctx)
{
    const char *at = nk_procfs_field(status, "\nGroups:");

    while (at && *at != '\0' && *at != '\n') {
        char *end;
        unsigned long gid = strtoul(at, &end, 10);

        if (end == at)
            return false;
        if (fn((gid_t)gid, ctx))
            return true;
        at = end;
        while (*at == ' ' || *at == '\t')
            at++;
    }
    return false;
}

bool nk_procfs_uids(const char *status, unsigned out[4])
{
    const char *at = nk_procfs_field(status, "\nUid:");

    return at && sscanf(at, "%u %u %u %u", &out[0], &out[1], &out[2], &out[3]) == 4;
}

static bool is_pid(const char *name)
{
    return name[0] >= '1' && name[0] <= '9';
}

const char *nk_procfs_next(DIR *dir)
{
    struct dirent *e;

    while ((e = readdir(dir)))
        if (is_pid(e->d_name))
            return e->d_name;
    return NULL;
}
