#include "process/trials.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/job.h"
#include "base/scope.h"
#include "process/child.h"
#include "process/confine.h"
#include "process/pty.h"
#include "process/spawn.h"

#define TRIED_MARK 64999 /* any group will do: the last of the default marks */
#define KILLED 255
#define ANSWER_MS 1000

/* Children answer with an errno, or 0; a trial's own -errno comes from the clone. */
static int run(int (*fn)(void *arg), void *arg)
{
    int rc = nk_spawn_probe(fn, arg);

    return rc > 0 ? -rc : rc;
}

/* umask cannot fail: an error can only come from the filter. */
static NK_RAW int child_seccomp(void *arg)
{
    int rc = nk_confine_apply(arg);

    if (rc < 0)
        return -rc;
    return nk_child_call(SYS_umask, 022, 0, 0, 0) == -EPERM ? 0 : KILLED;
}

int nk_trials_seccomp(void)
{
    struct sock_filter deny_umask[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_umask, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct nk_filter filter = {.program = deny_umask, .count = NK_COUNT(deny_umask)};
    int rc = run(child_seccomp, &filter);

    return rc == -KILLED ? NK_TRIAL_WRONG : rc;
}

struct drop {
    const struct nk_creds *as; /* borrowed */
    enum nk_spawn_step step;
};

static NK_RAW int child_drop(void *arg)
{
    struct drop *d = arg;

    return -nk_child_become(d->as, &d->step);
}

int nk_trials_uid_drop(const struct nk_creds *as)
{
    struct drop d = {.as = as, .step = NK_STEP_NONE};
    int rc = run(child_drop, &d);

    return rc < 0 && d.step == NK_STEP_VERIFY ? NK_TRIAL_WRONG : rc;
}

struct status {
    gid_t mark;
    char text[4096]; /* of the child's own /proc/self/status */
};

static NK_RAW int child_mark(void *arg)
{
    struct status *s = arg;
    long rc = nk_child_call(SYS_setgroups, 1, (long)&s->mark, 0, 0);
    int fd;

    if (rc < 0)
        return (int)-rc;
    fd = (int)nk_child_call(SYS_openat, AT_FDCWD, (long)"/proc/self/status", O_RDONLY | O_CLOEXEC,
                            0);
    if (fd < 0)
        return -fd;
    rc = nk_child_call(SYS_read, fd, (long)s->text, sizeof s->text - 1, 0);
    return rc < 0 ? (int)-rc : 0;
}

int nk_trials_mark(void)
{
    struct status s = {.mark = TRIED_MARK};
    int rc = run(child_mark, &s);
    const char *groups = strstr(s.text, "\nGroups:");

    if (rc < 0)
        return rc;
    return groups && strtol(groups + strlen("\nGroups:"), NULL, 10) == TRIED_MARK ? 0
                                                                                  : NK_TRIAL_WRONG;
}

/* A file of our own that only we may open, opened anew through /proc: once as we, once as the user. */
int nk_trials_thread_ids(const struct nk_creds *as)
{
    nk_auto_fd int fd = memfd_create("own", MFD_CLOEXEC);
    nk_auto_fd int again = -1;
    nk_auto_fd int foreign = -1;
    char path[64];
    int rc, refused;

    if (fd < 0 || fchmod(fd, 0600) < 0)
        return -errno;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    again = open(path, O_RDONLY | O_CLOEXEC);
    if (again < 0)
        return -errno;
    rc = nk_job_become(as);
    if (rc < 0)
        return rc;
    foreign = open(path, O_RDONLY | O_CLOEXEC);
    refused = foreign < 0 ? errno : 0;
    nk_job_restore();
    return refused == EACCES || refused == EPERM ? 0 : NK_TRIAL_WRONG;
}

struct visit {
    const struct nk_creds *as; /* borrowed */
    struct sockaddr_un address;
    unsigned length;
};

static NK_RAW int child_visit(void *arg)
{
    const struct visit *v = arg;
    enum nk_spawn_step step;
    int rc = nk_child_become(v->as, &step);
    long fd;

    if (rc < 0)
        return -rc;
    fd = nk_child_call(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, 0);
    if (fd < 0)
        return (int)-fd;
    return (int)-nk_child_call(SYS_connect, fd, (long)&v->address, v->length, 0);
}

/* An abstract socket: it needs no directory that the user can reach. */
static int listen_abstract(struct visit *v)
{
    nk_auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const size_t random = 16;

    v->address.sun_family = AF_UNIX;
    v->length = (unsigned)(offsetof(struct sockaddr_un, sun_path) + 1 + random);
    if (fd < 0 || getrandom(v->address.sun_path + 1, random, 0) != (ssize_t)random ||
        bind(fd, (struct sockaddr *)&v->address, v->length) < 0 || listen(fd, 1) < 0)
        return -errno;
    return nk_take_fd(&fd);
}

int nk_trials_peer_creds(const struct nk_creds *as)
{
    struct visit v = {.as = as};
    struct ucred peer;
    socklen_t size = sizeof peer;
    nk_auto_fd int listener = listen_abstract(&v);
    nk_auto_fd int conn = -1;
    int rc;

    if (listener < 0)
        return listener;
    rc = run(child_visit, &v);
    if (rc < 0)
        return rc;
    conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (conn < 0 || getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return -errno;
    return peer.uid == as->uid && peer.gid == as->gid ? 0 : NK_TRIAL_WRONG;
}

int nk_trials_terminal(void)
{
    nk_auto_fd int master = -1;
    nk_auto_fd int slave = -1;

    return nk_pty_open(80, 24, NULL, &master, &slave);
}

struct resized {
    int master, slave;
    uint64_t pending;
};

/* Every signal is blocked here, and one that is blocked waits even if nobody would heed it. */
static NK_RAW int child_resize(void *arg)
{
    struct resized *r = arg;
    struct winsize size = {.ws_col = 90, .ws_row = 30};
    long rc = nk_child_call(SYS_setsid, 0, 0, 0, 0);

    if (rc >= 0)
        rc = nk_child_call(SYS_ioctl, r->slave, TIOCSCTTY, 0, 0);
    if (rc >= 0)
        rc = nk_child_call(SYS_ioctl, r->master, TIOCSWINSZ, (long)&size, 0);
    if (rc >= 0)
        rc = nk_child_call(SYS_rt_sigpending, (long)&r->pending, sizeof r->pending, 0, 0);
    return rc < 0 ? (int)-rc : 0;
}

int nk_trials_terminal_signals(void)
{
    struct resized r = {.pending = 0};
    nk_auto_fd int master = -1;
    nk_auto_fd int slave = -1;
    int rc = nk_pty_open(80, 24, NULL, &master, &slave);

    if (rc < 0)
        return rc;
    r.master = master;
    r.slave = slave;
    rc = run(child_resize, &r);
    if (rc < 0)
        return rc;
    return r.pending & UINT64_C(1) << (SIGWINCH - 1) ? 0 : NK_TRIAL_WRONG;
}

/* An empty line that is ended by EOF reads as nothing. Where the character means nothing it comes out
 * with the line after it, so there is something to read either way. */
int nk_trials_terminal_eof(void)
{
    static const char typed[] = "\4x\n";
    nk_auto_fd int master = -1;
    nk_auto_fd int slave = -1;
    struct pollfd ready = {.events = POLLIN};
    char text[8];
    ssize_t n;
    int rc = nk_pty_open(80, 24, NULL, &master, &slave);

    if (rc < 0)
        return rc;
    if (write(master, typed, sizeof typed - 1) < 0)
        return -errno;
    ready.fd = slave;
    if (poll(&ready, 1, ANSWER_MS) != 1)
        return NK_TRIAL_WRONG;
    n = read(slave, text, sizeof text);
    if (n < 0)
        return -errno;
    return n == 0 ? 0 : NK_TRIAL_WRONG;
}
