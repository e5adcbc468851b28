/* The signals that nookd gets: three end the sandbox, all reach PROGRAM. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "app_inside.h"
#include "config_check.h"

#define LAST_FORWARDED 31

/* Neither what cannot be caught nor what a fault of our own raises; CHLD is the reaper's. */
static bool is_forwarded(int signo)
{
    static const int not [] = {SIGKILL, SIGSTOP, SIGCHLD, SIGILL,  SIGTRAP,
                               SIGABRT, SIGBUS,  SIGFPE,  SIGSEGV, SIGSYS};

    for (size_t i = 0; i < NK_COUNT(not ); i++)
        if (signo == not [i])
            return false;
    return true;
}

static bool is_end(int signo)
{
    return signo == SIGTERM || signo == SIGINT || signo == SIGQUIT;
}

static bool is_stop(int signo)
{
    return signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU;
}

/* Signals of faults are caught where somebody asked for it: our own faults still end us. */
static void add_mapped(const struct nk_config *cfg, sigset_t *out)
{
    for (size_t i = 0; i < cfg->map_signal.count; i++) {
        const char *from = cfg->map_signal.item[i];
        int signo = nk_config_check_signal(from, strcspn(from, ":"));

        if (signo != SIGCHLD)
            (void)sigaddset(out, signo);
    }
}

/* Without a PROGRAM the rest keeps what it does by default. */
static void fill(const struct nk_config *cfg, sigset_t *out)
{
    (void)sigemptyset(out);
    for (int signo = 1; signo <= LAST_FORWARDED; signo++)
        if (is_forwarded(signo) && (cfg->program || is_end(signo)))
            (void)sigaddset(out, signo);
    if (cfg->program)
        add_mapped(cfg, out);
}

void nk_app_signals_block(const struct nk_config *cfg)
{
    sigset_t set;

    fill(cfg, &set);
    (void)sigaddset(&set, SIGPIPE);
    (void)sigaddset(&set, SIGXFSZ); /* beyond a limit of the operator's a write fails by errno */
    (void)sigaddset(&set, SIGCHLD);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static int mapped(const struct nk_config *cfg, int signo)
{
    for (size_t i = 0; i < cfg->map_signal.count; i++) {
        const char *from = cfg->map_signal.item[i];
        const char *to = strchr(from, ':') + 1;

        if (nk_config_check_signal(from, (size_t)(to - 1 - from)) == signo)
            return strcmp(to, "0") == 0 ? 0 : nk_config_check_signal(to, strlen(to));
    }
    return signo;
}

static void handle(struct nk_app *a, int signo)
{
    int to = mapped(a->cfg, signo);

    if (!a->program) {
        nk_app_end(a, NK_REASON_SHUTDOWN, signo);
        return;
    }
    if (to == 0)
        return;
    if (is_end(signo) && !a->api.ending) {
        nk_app_end(a, NK_REASON_SHUTDOWN, to);
        return;
    }
    nk_program_signal(a->program, to);
    if (is_end(signo))
        nk_app_end(a, NK_REASON_SHUTDOWN, to);
    if (is_stop(signo) && getpid() != 1) /* it never stops; it would only lose a CONT that waits */
        (void)kill(getpid(), SIGSTOP);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct nk_app *a = poll->data;
    struct signalfd_siginfo info;

    (void)status;
    (void)events;
    while (read(a->signal_fd, &info, sizeof info) == sizeof info)
        if (info.ssi_pid != (uint32_t)getpid()) /* else it tells of a write of our own */
            handle(a, (int)info.ssi_signo);
}

int nk_app_signals_open(struct nk_app *a)
{
    sigset_t set;
    int rc;

    fill(a->cfg, &set);
    a->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (a->signal_fd < 0)
        return -errno;
    rc = uv_poll_init(&a->loop, &a->signal_poll, a->signal_fd);
    a->signals_open = rc == 0;
    a->signal_poll.data = a;
    return rc < 0 ? rc : uv_poll_start(&a->signal_poll, UV_READABLE, on_readable);
}

/* Once no change of ids comes any more: that would clear it. */
void nk_app_signals_follow_parent(const struct nk_app *a)
{
    if (a->cfg->parent_death == 0)
        return;
    (void)prctl(PR_SET_PDEATHSIG, (long)a->cfg->parent_death);
    if (getppid() != a->heritage.parent)
        (void)kill(getpid(), a->cfg->parent_death);
}
