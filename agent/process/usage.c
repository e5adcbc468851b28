#include "process/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"

#define NONE UINT64_MAX /* "max", and what version 1 says for no limit */

static bool read_file(const char *root, const char *path, char *buf, size_t size)
{
    nk_auto_fd int fd = -1;
    char full[512];
    ssize_t n;

    (void)snprintf(full, sizeof full, "%s%s", root, path);
    fd = open(full, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, buf, size - 1);
    if (n < 0)
        return false;
    buf[n] = '\0';
    return true;
}

static bool read_number(const char *root, const char *path, uint64_t *out)
{
    char text[64];
    char *end;
    uint64_t v;

    if (!read_file(root, path, text, sizeof text))
        return false;
    v = strtoull(text, &end, 10);
    if (end == text)
        return false;
    *out = v;
    return true;
}

/* The number behind a key at the beginning of a line. */
static uint64_t value_of(const char *text, const char *key)
{
    size_t len = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) == 0)
            return strtoull(line + len, NULL, 10);
    }
    return 0;
}

static void read_memory(const char *root, struct nk_usage *out)
{
    char text[4096];
    uint64_t limit = NONE, used = 0;

    if (read_file(root, "/proc/meminfo", text, sizeof text)) {
        out->mem_total = value_of(text, "MemTotal:") * 1024;
        out->mem_used = out->mem_total - value_of(text, "MemAvailable:") * 1024;
    }
    if (read_number(root, "/sys/fs/cgroup/memory.current", &used))
        (void)read_number(root, "/sys/fs/cgroup/memory.max", &limit);
    else if (read_number(root, "/sys/fs/cgroup/memory/memory.usage_in_bytes", &used))
        (void)read_number(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", &limit);
    else
        return;
    if (limit >= out->mem_total) /* not limited: the machine's values tell more */
        return;
    out->mem_used = used;
    out->mem_total = limit;
}

static void read_cpu(const char *root, struct nk_usage *out)
{
    char text[4096];
    cpu_set_t set;
    uint64_t user, nice, system;
    const long hz = sysconf(_SC_CLK_TCK);

    out->cpu_count = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
    out->at_ns = nk_clock_mono_ns();
    if (read_file(root, "/sys/fs/cgroup/cpu.stat", text, sizeof text)) {
        out->cpu_ns = value_of(text, "usage_usec ") * 1000;
        if (out->cpu_ns > 0)
            return;
    }
    if (read_number(root, "/sys/fs/cgroup/cpuacct/cpuacct.usage", &out->cpu_ns))
        return;
    if (read_file(root, "/proc/stat", text, sizeof text) && hz > 0 &&
        sscanf(text, "cpu %lu %lu %lu", &user, &nice, &system) == 3)
        out->cpu_ns = (user + nice + system) * (1000000000ull / (uint64_t)hz);
}

static uint64_t count_processes(const char *root)
{
    char path[512];
    uint64_t count = 0;
    struct dirent *e;
    DIR *dir;

    (void)snprintf(path, sizeof path, "%s/proc", root);
    dir = opendir(path);
    if (!dir)
        return 0;
    while ((e = readdir(dir)))
        count += e->d_name[0] >= '1' && e->d_name[0] <= '9';
    (void)closedir(dir);
    return count;
}

void nk_usage_read(const char *root_dir, const char *folder, struct nk_usage *out)
{
    struct statvfs fs;

    memset(out, 0, sizeof *out);
    read_memory(root_dir, out);
    read_cpu(root_dir, out);
    if (statvfs(folder, &fs) == 0) {
        out->disk_total = (uint64_t)fs.f_blocks * fs.f_frsize;
        out->disk_used = (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize;
    }
    if (!read_number(root_dir, "/sys/fs/cgroup/pids.current", &out->processes))
        out->processes = count_processes(root_dir);
}
