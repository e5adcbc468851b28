#include "process/cgroup_trees.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "process/cgroup_files.h"
#include "process/tree.h"

#define HOLD_MS 200   /* each move waits for the kernel, and a kill waits for each move */
#define HOLD_PASSES 8 /* of a tree that goes on growing the rest is left outside */
#define NAME_MAX_LEN 16
#define LINES_MAX 8192 /* of /proc/PID/cgroup */

struct pass {
    const struct nk_cgroups *g;
    const struct nk_cgroup_range *range;
    bool freeze;
    uint8_t *made; /* owned; a byte a mark: its group is there, and frozen if it shall be */
    int outside;   /* were, in this pass */
    int rc;        /* of what went wrong first, in all of them */
    uint64_t until_ms;
};

static void name_of(gid_t mark, char out[NAME_MAX_LEN])
{
    (void)snprintf(out, NAME_MAX_LEN, "m%u", (unsigned)mark);
}

static int write_in(const struct nk_cgroups *g, gid_t mark, const char *file, const char *text)
{
    char path[64];

    (void)snprintf(path, sizeof path, "m%u/%s", (unsigned)mark, file);
    return nk_cgroup_files_write(g->unified, path, text);
}

/* The line of version 2 ends in "/NAME/mMARK" for one that is inside. */
static bool is_inside(const struct nk_cgroups *g, int proc, pid_t pid, gid_t mark)
{
    char path[32], text[LINES_MAX], end[64];
    const char *line;
    size_t len, n;

    (void)snprintf(path, sizeof path, "%d/cgroup", (int)pid);
    if (nk_cgroup_files_read(proc, path, text, sizeof text) < 0)
        return true; /* it is gone */
    line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (!line)
        return false;
    line += *line == '\n';
    len = strcspn(line, "\n");
    n = (size_t)snprintf(end, sizeof end, "/%s/m%u", g->name, (unsigned)mark);
    return len >= n && strncmp(line + len - n, end, n) == 0;
}

static int make(struct pass *p, gid_t mark)
{
    uint8_t *made = &p->made[mark - p->range->first];
    char name[NAME_MAX_LEN];
    int rc = 0;

    if (*made)
        return 0;
    name_of(mark, name);
    if (mkdirat(p->g->unified, name, 0755) < 0 && errno != EEXIST)
        rc = -errno;
    if (rc == 0 && p->freeze)
        rc = write_in(p->g, mark, "cgroup.freeze", "1");
    *made = rc == 0;
    return rc;
}

static void place(int proc, pid_t pid, gid_t mark, void *ctx)
{
    struct pass *p = ctx;
    char text[16];
    int rc;

    if (p->range->which && p->range->which[mark - p->range->first] != 1)
        return;
    if (nk_clock_mono_ms() > p->until_ms) {
        p->outside++;
        return;
    }
    rc = make(p, mark);
    if (rc == 0 && is_inside(p->g, proc, pid, mark))
        return;
    (void)snprintf(text, sizeof text, "%d", (int)pid);
    if (rc == 0)
        rc = write_in(p->g, mark, "cgroup.procs", text);
    if (rc == -ENOENT) { /* somebody removed the group that was empty */
        p->made[mark - p->range->first] = 0;
        rc = 0;
    }
    p->outside++;
    if (rc < 0 && rc != -ESRCH && p->rc == 0)
        p->rc = rc;
}

static int hold(struct pass *p, int passes)
{
    int quiet = 0;

    for (int i = 0; quiet < 2; i++) {
        int rc;

        p->outside = 0;
        rc = nk_tree_each(p->range->first, p->range->count, place, p);
        if (rc < 0 || p->rc < 0)
            return rc < 0 ? rc : p->rc;
        quiet = p->outside == 0 ? quiet + 1 : 0;
        if (quiet < 2 && i + 1 == passes)
            return -EAGAIN;
        if (quiet < 2 && nk_clock_mono_ms() > p->until_ms)
            return -ETIMEDOUT;
    }
    return 0;
}

int nk_cgroup_trees_hold(const struct nk_cgroups *g, const struct nk_cgroup_range *range)
{
    nk_auto_free uint8_t *made = calloc(range->count, 1);
    struct pass p = {
        .g = g, .range = range, .made = made, .until_ms = nk_clock_mono_ms() + HOLD_MS};

    return made ? hold(&p, HOLD_PASSES) : -ENOMEM;
}

static bool stands_still(const struct nk_cgroups *g, gid_t mark)
{
    char path[64], text[256];

    (void)snprintf(path, sizeof path, "m%u/cgroup.events", (unsigned)mark);
    return nk_cgroup_files_read(g->unified, path, text, sizeof text) < 0 ||
           nk_cgroup_files_value(text, "frozen") == 1;
}

static int wait_still(const struct pass *p, uint64_t until_ms)
{
    for (unsigned i = 0; i < p->range->count; i++)
        while (p->made[i] && !stands_still(p->g, p->range->first + i)) {
            if (nk_clock_mono_ms() > until_ms)
                return -ETIMEDOUT;
            (void)poll(NULL, 0, 1);
        }
    return 0;
}

int nk_cgroup_trees_freeze(const struct nk_cgroups *g, const struct nk_cgroup_range *range,
                           uint64_t deadline_ms)
{
    nk_auto_free uint8_t *made = calloc(range->count, 1);
    uint64_t until = nk_clock_mono_ms() + deadline_ms;
    struct pass p = {.g = g, .range = range, .made = made, .until_ms = until, .freeze = true};
    int rc = made ? hold(&p, INT_MAX) : -ENOMEM;

    return rc < 0 ? rc : wait_still(&p, until);
}

static void thaw_all(const struct nk_cgroups *g)
{
    nk_auto_fd int again = openat(g->unified, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again < 0 ? NULL : fdopendir(again);
    struct dirent *e;

    if (!dir)
        return;
    (void)nk_take_fd(&again);
    while ((e = readdir(dir)))
        if (e->d_name[0] == 'm' && e->d_type == DT_DIR)
            (void)write_in(g, (gid_t)strtoul(e->d_name + 1, NULL, 10), "cgroup.freeze", "0");
    (void)closedir(dir);
}

void nk_cgroup_trees_thaw(const struct nk_cgroups *g, gid_t mark)
{
    if (mark)
        (void)write_in(g, mark, "cgroup.freeze", "0");
    else
        thaw_all(g);
}

void nk_cgroup_trees_kill(const struct nk_cgroups *g, gid_t mark)
{
    (void)write_in(g, mark, "cgroup.kill", "1");
}

void nk_cgroup_trees_drop(const struct nk_cgroups *g, gid_t mark)
{
    char name[NAME_MAX_LEN];

    name_of(mark, name);
    (void)unlinkat(g->unified, name, AT_REMOVEDIR);
}

uint64_t nk_cgroup_trees_oom(const struct nk_cgroups *g, gid_t mark)
{
    char path[64], text[512];

    (void)snprintf(path, sizeof path, "m%u/memory.events", (unsigned)mark);
    if (nk_cgroup_files_read(g->unified, path, text, sizeof text) < 0)
        return 0;
    return nk_cgroup_files_value(text, "oom_kill");
}
