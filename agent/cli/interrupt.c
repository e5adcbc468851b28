#include "cli/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/scope.h"

static bool is_ignored(int signo)
{
    struct sigaction now;

    return sigaction(signo, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static void fill_set(sigset_t *set)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

    sigemptyset(set);
    for (size_t i = 0; i < NK_COUNT(ends); i++) {
        if (!is_ignored(ends[i]))
            sigaddset(set, ends[i]);
    }
}

int nk_interrupt_open(struct nk_interrupt *i)
{
    sigset_t set;
    int fd;

    fill_set(&set);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    i->fd = fd;
    return 0;
}

void nk_interrupt_close(struct nk_interrupt *i)
{
    sigset_t set;

    if (i->fd < 0)
        return;
    fill_set(&set);
    nk_close_fd(&i->fd);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int nk_interrupt_wait(const struct nk_interrupt *i, int fd, short events, int timeout_ms)
{
    struct pollfd p[] = {{.fd = i->fd, .events = POLLIN},
                         {.fd = fd, .events = events},
                         {.fd = i->with_reader ? STDOUT_FILENO : -1}};
    struct signalfd_siginfo got;

    for (;;) {
        int n = poll(p, NK_COUNT(p), timeout_ms);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ETIMEDOUT;
        if (p[0].revents && read(i->fd, &got, sizeof got) == (ssize_t)sizeof got)
            return 128 + (int)got.ssi_signo;
        if (p[2].revents)
            return 128 + SIGPIPE;
        if (p[1].revents)
            return 0;
    }
}
