#include "process/child.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/heritage.h"

#define FIRST_FD 3
#define LAST_SIGNAL 64
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

struct dirent_raw { /* linux_dirent64 */
    uint64_t ino;
    int64_t off;
    unsigned short reclen;
    unsigned char type;
    char name[];
};

NK_RAW long nk_child_call(long nr, long a, long b, long c, long d)
{
    long rc = syscall(nr, a, b, c, d, 0L);

    return rc < 0 ? -errno : rc;
}

NK_RAW void nk_child_exit(int status)
{
    for (;;)
        (void)nk_child_call(SYS_exit_group, status, 0, 0, 0);
}

static NK_RAW int set_tty(const struct nk_spawn *s)
{
    return s->tty ? (int)nk_child_call(SYS_ioctl, s->stdio[0], TIOCSCTTY, 0, 0) : 0;
}

/* Its number may be that of a descriptor that is still needed: that one moves. */
static NK_RAW int set_channel(struct nk_child *c)
{
    int fd = c->spawn->channel;

    if (fd <= 0)
        return 0;
    if (c->status_fd == NK_SPAWN_CHANNEL)
        c->status_fd =
            (int)nk_child_call(SYS_fcntl, c->status_fd, F_DUPFD_CLOEXEC, NK_SPAWN_CHANNEL + 1, 0);
    if (c->status_fd < 0)
        return c->status_fd;
    if (fd == NK_SPAWN_CHANNEL) /* dup3 refuses this, and would have cleared the flag */
        return (int)nk_child_call(SYS_fcntl, fd, F_SETFD, 0, 0);
    return (int)nk_child_call(SYS_dup3, fd, NK_SPAWN_CHANNEL, 0, 0);
}

static NK_RAW int first_to_close(const struct nk_child *c)
{
    return c->spawn->channel > 0 ? NK_SPAWN_CHANNEL + 1 : FIRST_FD;
}

/* First all three are lifted out of 0 to 2, so that no dup3 overwrites one still needed. */
static NK_RAW int set_stdio(const struct nk_spawn *s)
{
    int fd[3];

    for (int i = 0; i < 3; i++) {
        fd[i] = s->stdio[i];
        if (fd[i] < FIRST_FD)
            fd[i] = (int)nk_child_call(SYS_fcntl, fd[i], F_DUPFD_CLOEXEC, FIRST_FD, 0);
        if (fd[i] < 0)
            return fd[i];
    }
    for (int i = 0; i < 3; i++) {
        int rc = (int)nk_child_call(SYS_dup3, fd[i], i, 0, 0);

        if (rc < 0)
            return rc;
    }
    return 0;
}

static NK_RAW int fd_number(const char *name)
{
    int fd = 0;

    for (; *name; name++) {
        if (*name < '0' || *name > '9')
            return -1;
        fd = fd * 10 + (*name - '0');
    }
    return fd;
}

/* Every descriptor from `first` on that this directory of our own descriptors names; how many, or
 * -errno. */
static NK_RAW int close_listed(int dir, int first, int keep)
{
    _Alignas(struct dirent_raw) char buf[2048];
    int closed = 0;

    for (;;) {
        long n = nk_child_call(SYS_getdents64, dir, (long)buf, sizeof buf, 0);

        if (n <= 0)
            return n < 0 ? (int)n : closed;
        for (long at = 0; at < n;) {
            const struct dirent_raw *e = (const void *)(buf + at);
            int fd = fd_number(e->name);

            at += e->reclen;
            if (fd < first || fd == keep || fd == dir)
                continue;
            (void)nk_child_call(SYS_close, fd, 0, 0, 0);
            closed++;
        }
    }
}

static NK_RAW int close_by_proc(int first, int keep)
{
    int dir =
        (int)nk_child_call(SYS_openat, AT_FDCWD, (long)"/proc/self/fd", O_RDONLY | O_DIRECTORY, 0);
    int rc;

    if (dir < 0)
        return dir;
    do { /* closing while reading may skip entries: until a whole pass closes none */
        rc = (int)nk_child_call(SYS_lseek, dir, 0, SEEK_SET, 0);
        if (rc >= 0)
            rc = close_listed(dir, first, keep);
    } while (rc > 0);
    (void)nk_child_call(SYS_close, dir, 0, 0, 0);
    return rc;
}

static NK_RAW int close_by_loop(int first, int keep)
{
    struct rlimit lim;
    long rc = nk_child_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&lim);

    if (rc < 0)
        return (int)rc;
    for (long fd = first; fd < (long)lim.rlim_cur; fd++) {
        if (fd != keep)
            (void)nk_child_call(SYS_close, fd, 0, 0, 0);
    }
    return 0;
}

static NK_RAW int close_range_around(int first, int keep)
{
    long rc = 0;

    if (keep > first)
        rc = nk_child_call(SYS_close_range, first, keep - 1, 0, 0);
    if (rc == 0)
        rc = nk_child_call(SYS_close_range, keep + 1, UINT_MAX, 0, 0);
    return (int)rc;
}

static NK_RAW int close_fds(const struct nk_child *c)
{
    int first = first_to_close(c);

    if (c->close_range && close_range_around(first, c->status_fd) == 0)
        return 0;
    if (close_by_proc(first, c->status_fd) == 0)
        return 0;
    return close_by_loop(first, c->status_fd);
}

/* Handlers would run on the parent's memory, and an ignored signal would stay ignored after exec. */
static NK_RAW int reset_signals(uint64_t which)
{
    static const unsigned long plain[8]; /* the kernel's struct sigaction, SIG_DFL */

    for (int signo = 1; signo <= LAST_SIGNAL; signo++) {
        long rc;

        if (!(which & UINT64_C(1) << (signo - 1)))
            continue;
        rc = nk_child_call(SYS_rt_sigaction, signo, (long)plain, 0, LAST_SIGNAL / 8);
        if (rc < 0)
            return (int)rc;
    }
    return 0;
}

static NK_RAW int set_limit(int resource, uint64_t soft, bool hard_too)
{
    struct rlimit lim;
    long rc;

    if (soft == 0)
        return 0;
    rc = nk_child_call(SYS_prlimit64, 0, resource, 0, (long)&lim);
    if (rc < 0)
        return (int)rc;
    lim.rlim_cur = soft < lim.rlim_max ? soft : lim.rlim_max;
    if (hard_too)
        lim.rlim_max = lim.rlim_cur;
    return (int)nk_child_call(SYS_prlimit64, 0, resource, (long)&lim, 0);
}

static NK_RAW int set_limits(const struct nk_limits *l)
{
    int rc = set_limit(RLIMIT_NPROC, l->nproc, true);

    if (rc == 0)
        rc = set_limit(RLIMIT_NOFILE, l->nofile_soft, false);
    if (rc == 0)
        rc = set_limit(RLIMIT_FSIZE, l->fsize, true);
    if (rc == 0)
        rc = set_limit(RLIMIT_AS, l->memory, true);
    if (rc == 0 && l->no_queues)
        (void)set_limit(RLIMIT_MSGQUEUE, 1, true); /* not every kernel has it */
    return rc;
}

static NK_RAW void raise_oom(int score)
{
    char text[8];
    char *at = text + sizeof text;
    int fd =
        (int)nk_child_call(SYS_openat, AT_FDCWD, (long)"/proc/self/oom_score_adj", O_WRONLY, 0);

    if (fd < 0)
        return;
    for (unsigned left = (unsigned)score; at > text; left /= 10) {
        *--at = (char)('0' + left % 10);
        if (left < 10)
            break;
    }
    (void)nk_child_call(SYS_write, fd, (long)at, text + sizeof text - at, 0);
    (void)nk_child_call(SYS_close, fd, 0, 0, 0);
}

/* What is inherited from the daemon and no right: nothing here can fail a start. */
static NK_RAW void set_habits(const struct nk_child *c)
{
    if (!c->spawn->heritage)
        (void)nk_child_call(SYS_umask, 022, 0, 0, 0);
    if (c->raise_oom)
        raise_oom(c->spawn->oom_score_adj);
    if (nk_child_call(SYS_getpriority, PRIO_PROCESS, 0, 0, 0) >
        20) /* the raw call says 20 - nice */
        (void)nk_child_call(SYS_setpriority, PRIO_PROCESS, 0, 0, 0);
}

static NK_RAW bool same_groups(const struct nk_creds *creds)
{
    gid_t got[NK_CREDS_GROUPS + 1];
    long n = nk_child_call(SYS_getgroups, NK_CREDS_GROUPS + 1, (long)got, 0, 0);

    if (n != (long)creds->group_count)
        return false;
    for (size_t i = 0; i < creds->group_count; i++) {
        size_t at = 0;

        while (at < creds->group_count && got[at] != creds->groups[i])
            at++;
        if (at == creds->group_count)
            return false;
    }
    return true;
}

static NK_RAW bool same_ids(const struct nk_creds *creds)
{
    uid_t u[3];
    gid_t g[3];

    if (nk_child_call(SYS_getresuid, (long)&u[0], (long)&u[1], (long)&u[2], 0) < 0 ||
        nk_child_call(SYS_getresgid, (long)&g[0], (long)&g[1], (long)&g[2], 0) < 0)
        return false;
    return u[0] == creds->uid && u[1] == creds->uid && u[2] == creds->uid && g[0] == creds->gid &&
           g[1] == creds->gid && g[2] == creds->gid && same_groups(creds);
}

static NK_RAW bool can_regain(const struct nk_creds *creds)
{
    if (creds->uid == 0)
        return false;
    return nk_child_call(SYS_setresuid, -1, 0, -1, 0) == 0 ||
           (creds->gid != 0 && nk_child_call(SYS_setresgid, -1, 0, -1, 0) == 0);
}

NK_RAW int nk_child_become(const struct nk_creds *creds, enum nk_spawn_step *out_step)
{
    long rc;

    *out_step = NK_STEP_SETGROUPS;
    rc = nk_child_call(SYS_setgroups, (long)creds->group_count, (long)creds->groups, 0, 0);
    if (rc < 0)
        return (int)rc;
    *out_step = NK_STEP_SETGID;
    rc = nk_child_call(SYS_setresgid, creds->gid, creds->gid, creds->gid, 0);
    if (rc < 0)
        return (int)rc;
    *out_step = NK_STEP_SETUID;
    rc = nk_child_call(SYS_setresuid, creds->uid, creds->uid, creds->uid, 0);
    if (rc < 0)
        return (int)rc;
    *out_step = NK_STEP_VERIFY;
    return same_ids(creds) && !can_regain(creds) ? 0 : -EPERM;
}

static NK_RAW int confine(const struct nk_child *c)
{
    int rc = nk_confine_drop_caps();

    /* Without the right to set capabilities there was nothing to drop. */
    if (rc < 0 && rc != -EPERM)
        return rc;
    return c->confine ? nk_confine_apply(c->filter) : 0;
}

static NK_RAW const char *end_of_dir(const char *at)
{
    while (*at && *at != ':')
        at++;
    return at;
}

/* dir/name into out, or false when it does not fit. An empty dir is the working directory. */
static NK_RAW bool join(char out[PATH_MAX], const char *dir, const char *dir_end, const char *name)
{
    size_t n = 0;

    if (dir_end - dir >= PATH_MAX - 2)
        return false;
    while (dir < dir_end)
        out[n++] = *dir++;
    if (n > 0)
        out[n++] = '/';
    do {
        if (n == PATH_MAX)
            return false;
        out[n++] = *name;
    } while (*name++);
    return true;
}

static NK_RAW bool goes_on(int sys)
{
    return sys == ENOENT || sys == ENOTDIR || sys == EACCES || sys == ESTALE || sys == ENODEV ||
           sys == ETIMEDOUT || sys == ENAMETOOLONG;
}

/* As execvp: the first that can be run; one that may not be run is told only if no other could. */
static NK_RAW int search_and_execute(const struct nk_child *c)
{
    const struct nk_spawn *s = c->spawn;
    const char *dir = c->path ? c->path : DEFAULT_PATH;
    char file[PATH_MAX];
    int sys = ENOENT;

    for (;;) {
        const char *end = end_of_dir(dir);
        int got = ENAMETOOLONG;

        if (join(file, dir, end, s->argv[0]))
            got = (int)-nk_child_call(SYS_execve, (long)file, (long)s->argv, (long)s->envp, 0);
        if (!goes_on(got))
            return -got;
        if (got == EACCES || (got == ENAMETOOLONG && sys == ENOENT))
            sys = got;
        if (!*end)
            return -sys;
        dir = end + 1;
    }
}

static NK_RAW bool has_slash(const char *text)
{
    while (*text && *text != '/')
        text++;
    return *text == '/';
}

static NK_RAW int execute(struct nk_child *c)
{
    static const uint64_t none;
    const struct nk_heritage *h = c->spawn->heritage;
    const char *file = c->spawn->argv[0];

    c->reached = true;
    (void)nk_child_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)(h ? &h->blocked : &none), 0,
                        LAST_SIGNAL / 8);
    if (!*file)
        return -ENOENT;
    if (!has_slash(file))
        return search_and_execute(c);
    return (int)nk_child_call(SYS_execve, (long)file, (long)c->spawn->argv, (long)c->spawn->envp,
                              0);
}

/* All that can be done with the daemon's own rights comes before they are given up: the shorter the
 * time in which the user could stop or kill this child. */
static NK_RAW int prepare(struct nk_child *c, enum nk_spawn_step *step)
{
    const struct nk_spawn *s = c->spawn;
    const struct nk_heritage *h = s->heritage;
    int rc;

    for (unsigned i = 0; i < s->enter_count; i++)
        (void)nk_child_call(SYS_write, s->enter[i], (long)"0", 1, 0); /* best effort */
    *step = NK_STEP_SETSID;
    rc = h ? nk_heritage_make_group(h, s->stdio[0]) : (int)nk_child_call(SYS_setsid, 0, 0, 0, 0);
    if (rc < 0)
        return rc;
    *step = NK_STEP_TTY;
    rc = set_tty(s);
    if (rc < 0)
        return rc;
    *step = NK_STEP_STDIO;
    rc = set_stdio(s);
    if (rc == 0)
        rc = set_channel(c);
    if (rc < 0)
        return rc;
    *step = NK_STEP_FDS;
    rc = h ? nk_heritage_keep_fds(h) : close_fds(c);
    if (rc < 0)
        return rc;
    *step = NK_STEP_RLIMIT;
    rc = set_limits(&s->limits);
    if (rc < 0)
        return rc;
    set_habits(c);
    *step = NK_STEP_CONFINE;
    rc = h ? nk_heritage_set_signals(h) : reset_signals(c->reset);
    if (rc == 0 && !c->bounded)
        (void)nk_confine_drop_bounding();
    return rc;
}

static NK_RAW int start(struct nk_child *c, enum nk_spawn_step *step)
{
    const struct nk_spawn *s = c->spawn;
    int rc = prepare(c, step);

    if (rc < 0)
        return rc;
    if (s->switch_user) {
        rc = nk_child_become(&s->creds, step);
        if (rc < 0)
            return rc;
    }
    /* A change of ids clears it, so only now: nothing of a user outlives a daemon that dies. */
    (void)nk_child_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
    *step = NK_STEP_CHDIR;
    rc = s->cwd ? (int)nk_child_call(SYS_chdir, (long)s->cwd, 0, 0, 0) : 0;
    if (rc < 0)
        return rc;
    *step = NK_STEP_CONFINE;
    rc = confine(c);
    if (rc < 0)
        return rc;
    if (s->heritage)
        nk_heritage_name_pid(s->heritage);
    *step = NK_STEP_EXEC;
    return execute(c);
}

NK_RAW int nk_child_run(void *child)
{
    struct nk_child *c = child;
    enum nk_spawn_step step = NK_STEP_NONE;
    struct nk_child_failure failure;

    failure.sys = -start(c, &step);
    failure.step = (int)step;
    (void)nk_child_call(SYS_write, c->status_fd, (long)&failure, sizeof failure, 0);
    nk_child_exit(127);
}
