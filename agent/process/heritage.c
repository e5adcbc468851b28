#include "process/heritage.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/child.h"

#define FIRST_FD 3
#define LAST_SIGNAL 64
#define FDS_TRIED 65536 /* where the kernel has no close_range */

struct raw_action { /* the kernel's struct sigaction */
    unsigned long handler, rest[7];
};

/* By raw calls: libc hides the two signals that are its own. */
void nk_heritage_record(struct nk_heritage *out)
{
    struct rlimit files = {0, 0};

    (void)getrlimit(RLIMIT_NOFILE, &files);
    *out = (struct nk_heritage){.parent = getppid(), .nofile = files.rlim_cur};
    (void)syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &out->blocked, sizeof out->blocked);
    for (int signo = 1; signo <= LAST_SIGNAL; signo++) {
        struct raw_action now = {0};

        if (syscall(SYS_rt_sigaction, signo, NULL, &now, sizeof out->blocked) == 0 &&
            now.handler == (unsigned long)SIG_IGN)
            out->ignored |= UINT64_C(1) << (signo - 1);
    }
}

static bool is_kept(const struct nk_heritage *h, int keep, int fd)
{
    for (size_t i = 0; i < h->fd_count; i++)
        if (h->fds[i] == fd)
            return true;
    return fd == keep;
}

static int next_kept(const struct nk_heritage *h, int keep, int from)
{
    int next = keep >= from ? keep : -1;

    for (size_t i = 0; i < h->fd_count; i++)
        if (h->fds[i] >= from && (next < 0 || h->fds[i] < next))
            next = h->fds[i];
    return next;
}

static int close_between(unsigned first, unsigned last)
{
    return first > last || syscall(SYS_close_range, first, last, 0u) == 0 ? 0 : -errno;
}

static void close_by_loop(const struct nk_heritage *h, int keep)
{
    for (int fd = FIRST_FD; fd < FDS_TRIED; fd++)
        if (!is_kept(h, keep, fd))
            (void)close(fd);
}

static void close_others(const struct nk_heritage *h, int keep)
{
    int from = FIRST_FD;
    int next;

    while ((next = next_kept(h, keep, from)) >= 0) {
        if (close_between((unsigned)from, (unsigned)next - 1) < 0)
            break;
        from = next + 1;
    }
    if (next >= 0 || close_between((unsigned)from, ~0u) < 0)
        close_by_loop(h, keep);
}

static int keep_closely(int fd, int *out_missing)
{
    if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
        return 0;
    *out_missing = fd;
    return -EBADF;
}

int nk_heritage_close_fds(const struct nk_heritage *h, int keep, int *out_missing)
{
    int rc;

    for (int fd = 0; fd < FIRST_FD; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_NOCTTY) < 0)
            continue; /* without /dev there is nothing to put there */
    close_others(h, keep);
    rc = keep_closely(keep, out_missing);
    for (size_t i = 0; rc == 0 && i < h->fd_count; i++)
        rc = keep_closely(h->fds[i], out_missing);
    return rc;
}

/* Every signal is blocked here, so the terminal does not stop us for giving it away. */
NK_RAW int nk_heritage_make_group(const struct nk_heritage *h, int terminal)
{
    int rc = (int)nk_child_call(SYS_setpgid, 0, 0, 0, 0);
    pid_t own;

    if (rc < 0 || !h->foreground)
        return rc;
    own = (pid_t)nk_child_call(SYS_getpid, 0, 0, 0, 0);
    (void)nk_child_call(SYS_ioctl, terminal, TIOCSPGRP, (long)&own, 0);
    return 0;
}

NK_RAW int nk_heritage_set_signals(const struct nk_heritage *h)
{
    static const struct raw_action plain = {(unsigned long)SIG_DFL, {0}};
    static const struct raw_action ignore = {(unsigned long)SIG_IGN, {0}};

    for (int signo = 1; signo <= LAST_SIGNAL; signo++) {
        bool ignored = h->ignored & UINT64_C(1) << (signo - 1);

        if (signo == SIGKILL || signo == SIGSTOP)
            continue;
        long rc = nk_child_call(SYS_rt_sigaction, signo, (long)(ignored ? &ignore : &plain), 0,
                                LAST_SIGNAL / 8);
        if (rc < 0)
            return (int)rc;
    }
    return 0;
}

NK_RAW int nk_heritage_keep_fds(const struct nk_heritage *h)
{
    for (size_t i = 0; i < h->fd_count; i++) {
        long rc = nk_child_call(SYS_fcntl, h->fds[i], F_SETFD, 0, 0);

        if (rc < 0)
            return (int)rc;
    }
    return 0;
}

NK_RAW void nk_heritage_name_pid(const struct nk_heritage *h)
{
    char digits[16];
    size_t n = 0;
    long pid = nk_child_call(SYS_getpid, 0, 0, 0, 0);

    if (!h->listen_pid)
        return;
    for (; pid > 0; pid /= 10)
        digits[n++] = (char)('0' + pid % 10);
    for (size_t i = 0; i < n; i++)
        h->listen_pid[i] = digits[n - 1 - i];
    h->listen_pid[n] = '\0';
}
