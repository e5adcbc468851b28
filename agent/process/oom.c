#include "process/oom.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "process/cgroup_files.h"

#define LATELY_MS 1000 /* from the kernel's kill to the end that is told */

static int open_in(const char *folder, const char *name)
{
    char path[1200];

    if (!*folder)
        return -1;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static uint64_t count(const struct nk_oom *o)
{
    uint64_t sum = 0;

    for (int i = 0; i < NK_OOM_FILES; i++) {
        char text[512];
        ssize_t n = o->fd[i] < 0 ? -1 : pread(o->fd[i], text, sizeof text - 1, 0);

        if (n <= 0)
            continue;
        text[n] = '\0';
        sum += nk_cgroup_files_value(text, "oom_kill");
    }
    return sum;
}

/* Version 2 counts what lies below, version 1 does not. */
void nk_oom_open(struct nk_oom *o, const struct nk_cgroups *g)
{
    nk_oom_close(o);
    o->fd[0] = open_in(g->base, "memory.events");
    if (o->fd[0] < 0 && nk_cgroups_are_open(g))
        o->fd[0] = openat(g->unified, "memory.events", O_RDONLY | O_CLOEXEC);
    o->fd[1] = open_in(g->base_memory, "memory.oom_control");
    if (nk_cgroups_are_open(g) && g->memory_v1)
        o->fd[2] = openat(g->memory, "memory.oom_control", O_RDONLY | O_CLOEXEC);
    o->seen = count(o);
    o->looked_ms = nk_clock_mono_ms();
    o->grown_ms = 0;
}

void nk_oom_close(struct nk_oom *o)
{
    for (int i = 0; i < NK_OOM_FILES; i++) {
        if (o->looked_ms != 0)
            nk_close_fd(&o->fd[i]);
        o->fd[i] = -1;
    }
    o->looked_ms = 0;
}

void nk_oom_look(struct nk_oom *o)
{
    uint64_t now = nk_clock_mono_ms();

    if (o->looked_ms != 0 && now - o->looked_ms >= LATELY_MS)
        (void)nk_oom_lately(o);
}

bool nk_oom_lately(struct nk_oom *o)
{
    uint64_t sum;

    if (o->looked_ms == 0)
        return false;
    sum = count(o);
    o->looked_ms = nk_clock_mono_ms();
    if (sum > o->seen)
        o->grown_ms = o->looked_ms;
    o->seen = sum;
    return o->grown_ms != 0 && o->looked_ms - o->grown_ms < LATELY_MS;
}
