#include "process/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "process/probe.h"
#include "process/pty.h"
#include "process/registry_private.h"

static bool kernel_has(const struct nk_live *l, enum nk_mech m)
{
    return nk_has(l->process->registry->cfg.kernel, m);
}

static bool is_shortage(int sys)
{
    return sys == ENOSPC || sys == EMFILE || sys == ENFILE || sys == ENOMEM || sys == EAGAIN;
}

static int refuse(int sys, struct nk_err *err)
{
    (void)nk_fail(err, is_shortage(sys) ? NK_OVERLOADED : NK_NOT_SUPPORTED,
                  "cannot open a terminal: %s", strerror(sys));
    err->sys = sys;
    return -1;
}

/* A tty given input and nothing that keeps it open ends after it; else it is there to be typed at. */
static int fill_input(struct nk_input *in, const struct nk_command *cmd)
{
    in->last = NK_PTY_NO_BYTE;
    in->close_after = cmd->stdin_given && !cmd->stdin_open;
    in->live->process->input_end = cmd->stdin_len;
    if (cmd->stdin_len > 0)
        nk_buf_add(&in->pending, cmd->stdin_data, cmd->stdin_len);
    return in->pending.failed ? -ENOMEM : 0;
}

int nk_terminal_make(struct nk_live *l, const struct nk_command *cmd, struct nk_err *err)
{
    const struct nk_mech_state *state = &l->process->registry->cfg.kernel->mech[NK_MECH_TERMINAL];
    int slave, rc;

    if (!state->available)
        return nk_fail(err, NK_NOT_SUPPORTED, "there are no terminals here: %s", state->reason);
    l->terminal = calloc(1, sizeof *l->terminal);
    if (!l->terminal)
        return refuse(ENOMEM, err);
    l->terminal->slave = -1;
    rc = nk_pty_open(cmd->cols, cmd->rows, &cmd->user->creds, &l->out[0].fd, &slave);
    if (rc < 0)
        return refuse(-rc, err);
    for (int i = 0; i < 3; i++)
        l->spawn.stdio[i] = slave;
    /* The loop does not poll one descriptor twice. */
    l->in.fd = fcntl(l->out[0].fd, F_DUPFD_CLOEXEC, 0);
    if (l->in.fd >= 0)
        l->terminal->slave = fcntl(slave, F_DUPFD_CLOEXEC, 0);
    if (l->in.fd < 0 || l->terminal->slave < 0)
        return refuse(errno, err);
    rc = fill_input(&l->in, cmd);
    return rc < 0 ? refuse(-rc, err) : 0;
}

void nk_terminal_open(struct nk_live *l, uv_loop_t *loop)
{
    if (!l->terminal)
        return;
    (void)uv_timer_init(loop, &l->terminal->tell);
    (void)uv_timer_init(loop, &l->terminal->hang_up);
    l->terminal->tell.data = l;
    l->terminal->hang_up.data = l;
    l->open_handles += 2;
}

static void on_closed(uv_handle_t *handle)
{
    nk_live_unhandle(handle->data);
}

void nk_terminal_close(struct nk_live *l)
{
    if (!l->terminal)
        return;
    nk_close_fd(&l->terminal->slave);
    l->spawn.stdio[1] = l->spawn.stdio[2] = -1; /* all three are one */
    if (!l->handles)
        return;
    uv_close((uv_handle_t *)&l->terminal->tell, on_closed);
    uv_close((uv_handle_t *)&l->terminal->hang_up, on_closed);
}

static void on_tell(uv_timer_t *timer)
{
    nk_process_emit(((struct nk_live *)timer->data)->process, NK_PROC_EV_RESIZED, NULL);
}

/* Not every kernel says who is in front: then all of the command, who mostly do not heed it. */
static void tell_programs(struct nk_live *l)
{
    pid_t front = nk_terminal_foreground(l);

    if (!nk_terminal_is_blind(l))
        return;
    if (front > 0)
        (void)kill(-front, SIGWINCH);
    else if (l->process->state != NK_PROC_STARTING)
        nk_process_signal(l->process, SIGWINCH, true);
}

int nk_terminal_resize(struct nk_live *l, unsigned cols, unsigned rows)
{
    int rc = nk_pty_resize(l->out[0].fd, cols, rows);

    if (rc < 0)
        return rc;
    tell_programs(l);
    (void)uv_timer_start(&l->terminal->tell, on_tell, 0, 0);
    return 0;
}

pid_t nk_terminal_foreground(const struct nk_live *l)
{
    if (!l->terminal || l->out[0].fd < 0 || l->process->pid <= 0)
        return 0;
    return nk_pty_foreground(l->out[0].fd, l->process->pid);
}

bool nk_terminal_is_blind(const struct nk_live *l)
{
    return l->terminal && !kernel_has(l, NK_MECH_TERMINAL_SIGNALS);
}

static void on_hang_up(uv_timer_t *timer)
{
    struct nk_live *l = timer->data;

    (void)nk_process_signal_foreground(l->process, SIGHUP);
}

void nk_terminal_input_ended(struct nk_live *l)
{
    if (l->terminal && !kernel_has(l, NK_MECH_TERMINAL_EOF))
        (void)uv_timer_start(&l->terminal->hang_up, on_hang_up, NK_HANG_UP_MS, 0);
}

/* The group that the leader led. Its number is nobody else's while somebody is in it. */
static pid_t left_behind(pid_t leader)
{
    return getsid(leader) < 0 && errno == ESRCH ? leader : 0;
}

/* The end of a session's leader takes the terminal from the session and tells the group in front. One
 * that is still there was not told; a kernel that tells nobody need not know who it is. */
void nk_terminal_reaped(struct nk_live *l)
{
    pid_t front = nk_terminal_foreground(l);

    if (!l->terminal)
        return;
    (void)uv_timer_stop(&l->terminal->hang_up);
    nk_close_fd(&l->terminal->slave);
    if (front <= 0 && nk_terminal_is_blind(l))
        front = left_behind(l->process->pid);
    if (front <= 0)
        return;
    (void)kill(-front, SIGHUP);
    (void)kill(-front, SIGCONT);
}
