#include "process/hosted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/scope.h"
#include "process/live.h"

/* A pipe without a writer is at its end, and opened for writing again it is not: so one pipe serves
 * every run, each with an end of its own. */
static int open_again(int fd, int flags)
{
    char path[32];
    int again;

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    again = open(path, flags | O_NONBLOCK | O_CLOEXEC);
    return again < 0 ? -errno : again;
}

int nk_hosted_open_input(struct nk_live *l, const struct nk_process *carrier)
{
    const struct nk_live *from = carrier ? carrier->live : NULL;
    int fd = from && from->kept_input >= 0 ? open_again(from->kept_input, O_WRONLY) : -ESRCH;

    if (fd < 0)
        return fd;
    l->in.fd = fd;
    return 0;
}

int nk_hosted_keep_input(struct nk_live *l)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    (void)close(ends[1]);
    l->spawn.stdio[0] = ends[0];
    l->kept_input = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
    return l->kept_input < 0 ? -errno : 0;
}

/* What one run did not read is not the next one's. */
static void empty_input(const struct nk_live *carrier)
{
    nk_auto_fd int fd = -1;
    char away[4096];
    int held = 0;

    if (carrier->kept_input < 0 || ioctl(carrier->kept_input, FIONREAD, &held) < 0 || held == 0)
        return;
    fd = open_again(carrier->kept_input, O_RDONLY);
    while (fd >= 0 && held > 0) {
        ssize_t n = read(fd, away, sizeof away);

        if (n <= 0)
            return;
        held -= (int)n;
    }
}

static void set_sink(struct nk_live *l, struct nk_process *p)
{
    struct nk_process *old = l->sink;

    l->sink = p;
    if (p) {
        nk_process_ref(p);
        p->carrier = l->process;
    }
    if (!old)
        return;
    old->carrier = NULL;
    nk_process_unref(old);
}

void nk_hosted_begin(struct nk_process *p)
{
    struct nk_process *carrier = p->host->carrier;

    p->pid = carrier->pid;
    p->state = NK_PROC_RUNNING;
    set_sink(carrier->live, p);
    nk_output_resume(carrier->live);
    nk_input_push(&p->live->in);
    if (p->timeout_ms > 0)
        nk_process_arm_timeout(p->live, p->timeout_ms);
    if (p->live->kill_wanted)
        nk_process_end(p, p->reason);
    nk_process_emit(p, NK_PROC_EV_STARTED, NULL);
}

void nk_hosted_end(struct nk_process *p, int wait_status)
{
    struct nk_live *carrier = p->carrier ? p->carrier->live : NULL;

    if (p->reaped)
        return;
    nk_process_ref(p);
    p->host = NULL;
    p->reaped = true;
    p->wait_status = wait_status;
    (void)uv_timer_stop(&p->live->timeout);
    nk_input_close(&p->live->in);
    if (carrier)
        empty_input(carrier);
    nk_process_step(p);
    nk_process_unref(p);
}

void nk_hosted_touch(struct nk_process *p)
{
    nk_process_emit(p, NK_PROC_EV_OUTPUT, NULL);
}

void nk_hosted_drain(struct nk_process *carrier, struct nk_drain *d)
{
    struct nk_live *l = carrier->live;

    nk_process_ref(carrier);
    nk_output_mark(l);
    for (int i = 0; i < 2 && carrier->live; i++)
        if (l->out[i].must_read > 0)
            nk_output_read(&l->out[i], true);
    if (carrier->live) {
        l->drain = d;
        nk_hosted_read(l);
    }
    nk_process_unref(carrier);
}

void nk_hosted_undrain(struct nk_process *carrier)
{
    if (carrier->live)
        carrier->live->drain = NULL;
}

void nk_hosted_read(struct nk_live *l)
{
    struct nk_drain *d = l->drain;

    if (!d || nk_output_left(l) > 0)
        return;
    l->drain = NULL;
    d->fn(d);
}

void nk_hosted_let_go(struct nk_live *l)
{
    l->drain = NULL;
    set_sink(l, NULL);
    nk_close_fd(&l->kept_input);
}
