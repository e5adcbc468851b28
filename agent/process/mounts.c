#include "process/mounts.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/attr.h"

#define PLAIN (MS_NOSUID | MS_NODEV | MS_NOEXEC)

struct place {
    const char *path, *sign; /* where the sign is, something is mounted already */
    const char *type, *options;
    unsigned long flags;
};

static const struct {
    const char *path;
    unsigned minor;
} devices[] = {
    {"/dev/null", 3}, {"/dev/zero", 5}, {"/dev/full", 7}, {"/dev/random", 8}, {"/dev/urandom", 9},
};

static const char *const links[][2] = {
    {"/proc/self/fd", "/dev/fd"},       {"/proc/self/fd/0", "/dev/stdin"},
    {"/proc/self/fd/1", "/dev/stdout"}, {"/proc/self/fd/2", "/dev/stderr"},
    {"pts/ptmx", "/dev/ptmx"},
};

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static bool put(const struct place *p)
{
    if (is_there(p->sign))
        return false;
    (void)mkdir(p->path, 0755);
    return mount(p->type, p->path, p->type, p->flags, p->options) == 0;
}

static void make_device(const char *path, unsigned major_number, unsigned minor_number)
{
    if (mknod(path, S_IFCHR | 0666, makedev(major_number, minor_number)) == 0)
        (void)chmod(path, 0666); /* whatever the umask */
}

/* The kernel's own /dev where it may be had, else one of the devices that every program expects. */
static void make_dev(void)
{
    static const struct place own = {"/dev", "/dev/null", "devtmpfs", "mode=0755",
                                     MS_NOSUID | MS_NOEXEC};
    static const struct place made = {"/dev", "/dev/null", "tmpfs", "mode=0755,size=64k",
                                      MS_NOSUID | MS_NOEXEC};

    if (!put(&own) && put(&made)) {
        for (size_t i = 0; i < NK_COUNT(devices); i++)
            make_device(devices[i].path, 1, devices[i].minor);
        make_device("/dev/tty", 5, 0);
    }
    for (size_t i = 0; i < NK_COUNT(links); i++)
        (void)!symlink(links[i][0], links[i][1]);
}

/* Control groups, on a machine of our own: where nobody has mounted any, not even of version 1. */
static void make_groups(void)
{
    static const struct place own = {"/sys/fs/cgroup", "/sys/fs/cgroup/cgroup.procs", "cgroup2",
                                     NULL, PLAIN};
    struct stat sys, groups;

    if (stat("/sys", &sys) == 0 && stat(own.path, &groups) == 0 && sys.st_dev == groups.st_dev)
        (void)put(&own);
}

void nk_mounts_make(void)
{
    static const struct place before[] = {
        {"/proc", "/proc/self", "proc", NULL, PLAIN},
        {"/sys", "/sys/kernel", "sysfs", NULL, PLAIN | MS_RDONLY},
    };
    static const struct place after[] = {
        {"/dev/pts", "/dev/pts/ptmx", "devpts", "newinstance,ptmxmode=0666,mode=0620",
         MS_NOSUID | MS_NOEXEC},
        {"/dev/shm", "/dev/shm", "tmpfs", "mode=1777", PLAIN},
        {"/run", "/run", "tmpfs", "mode=0755", MS_NOSUID | MS_NODEV},
    };

    for (size_t i = 0; i < NK_COUNT(before); i++)
        (void)put(&before[i]);
    make_groups();
    if (!is_there("/dev/null"))
        make_dev();
    for (size_t i = 0; i < NK_COUNT(after); i++)
        (void)put(&after[i]);
}
