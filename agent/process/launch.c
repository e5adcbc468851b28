#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "process/hosted.h"
#include "process/live.h"
#include "process/registry.h"
#include "process/terminal.h"

/* A NULL-ended list of strings in one allocation. */
static char **dup_list(const char *const *list)
{
    size_t count = 0, bytes = 0;
    char **copy, *at;

    while (list[count])
        bytes += strlen(list[count++]) + 1;
    copy = malloc((count + 1) * sizeof *copy + bytes);
    if (!copy)
        return NULL;
    at = (char *)(copy + count + 1);
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(list[i]) + 1;

        copy[i] = memcpy(at, list[i], n);
        at += n;
    }
    copy[count] = NULL;
    return copy;
}

static int copy_words(struct nk_process *p, struct nk_live *l, const struct nk_command *cmd)
{
    p->argv = dup_list(cmd->argv);
    p->cwd = strdup(cmd->cwd);
    p->name = cmd->name ? strdup(cmd->name) : NULL;
    l->envp = dup_list(cmd->envp);
    if (!p->argv || !p->cwd || !l->envp || (cmd->name && !p->name))
        return -ENOMEM;
    p->shell = cmd->shell;
    p->resident = cmd->resident;
    memcpy(p->user, cmd->user->name, sizeof p->user);
    p->tty = cmd->tty;
    p->cols = cmd->cols;
    p->rows = cmd->rows;
    return 0;
}

static int make_buffers(struct nk_process *p, const struct nk_command *cmd)
{
    size_t n;

    nk_outlog_init(&p->log, cmd->log_bytes);
    if (!nk_outlog_reserve(&p->log, 1, UINT64_MAX, &n)) /* so that a byte always finds room */
        return -ENOMEM;
    if (!cmd->capture)
        return 0;
    p->captures = calloc(2, sizeof *p->captures);
    if (!p->captures)
        return -ENOMEM;
    nk_capture_init(&p->captures[0], cmd->max_output);
    nk_capture_init(&p->captures[1], cmd->max_output);
    return 0;
}

static int make_pipe(int *out_read, int *out_write)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *out_read = ends[0];
    *out_write = ends[1];
    return 0;
}

/* A descriptor that is at its end, also in a root without devices. */
static int open_empty(int *out_fd)
{
    int ends[2];
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0 && errno != ENOENT)
        return -errno;
    if (fd < 0) {
        if (pipe2(ends, O_CLOEXEC) < 0)
            return -errno;
        (void)close(ends[1]);
        fd = ends[0];
    }
    *out_fd = fd;
    return 0;
}

static int make_input(struct nk_live *l, const struct nk_command *cmd)
{
    struct nk_input *in = &l->in;
    int rc;

    if (cmd->resident)
        return nk_hosted_keep_input(l);
    if (!cmd->stdin_given && !cmd->stdin_open)
        return open_empty(&l->spawn.stdio[0]);
    rc = cmd->host ? nk_hosted_open_input(l, cmd->host->carrier)
                   : make_pipe(&l->spawn.stdio[0], &in->fd);
    if (rc < 0)
        return rc;
    if (!cmd->host && fcntl(in->fd, F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    nk_buf_add(&in->pending, cmd->stdin_data, cmd->stdin_len);
    if (in->pending.failed)
        return -ENOMEM;
    l->process->input_end = cmd->stdin_len;
    in->close_after = !cmd->stdin_open;
    if (!cmd->host)
        nk_input_push(in); /* what fits goes into the pipe before there is a reader */
    return 0;
}

static int make_output(struct nk_output *o, int *out_write)
{
    int rc = make_pipe(&o->fd, out_write);

    if (rc == 0 && fcntl(o->fd, F_SETFL, O_NONBLOCK) < 0)
        rc = -errno;
    return rc;
}

static int make_pipes(struct nk_live *l, const struct nk_command *cmd)
{
    bool wants = cmd->stdin_given || cmd->stdin_open || !cmd->host;
    int rc = wants ? make_input(l, cmd) : 0;

    if (cmd->host)
        return rc;
    if (rc == 0)
        rc = make_output(&l->out[0], &l->spawn.stdio[1]);
    return rc < 0 ? rc : make_output(&l->out[1], &l->spawn.stdio[2]);
}

static void fill_spawn(struct nk_live *l, const struct nk_command *cmd)
{
    struct nk_process *p = l->process;
    struct nk_spawn *s = &l->spawn;

    s->argv = (const char *const *)p->argv;
    s->envp = (const char *const *)l->envp;
    s->cwd = p->cwd;
    s->creds = cmd->user->creds;
    s->switch_user = geteuid() == 0;
    s->limits = cmd->limits;
    s->tty = cmd->tty;
    s->oom_score_adj = 500;
    s->share = cmd->owner;
    s->enter_count = nk_registry_enter(p->registry, s->enter);
    if (p->mark && s->creds.group_count < NK_CREDS_GROUPS)
        s->creds.groups[s->creds.group_count++] = p->mark;
}

int nk_launch_prepare(struct nk_live *l, const struct nk_command *cmd, struct nk_err *err)
{
    struct nk_process *p = l->process;
    int rc = copy_words(p, l, cmd);

    if (rc == 0)
        rc = make_buffers(p, cmd);
    if (rc == 0 && cmd->tty) {
        if (nk_terminal_make(l, cmd, err) < 0)
            return -1;
    } else if (rc == 0) {
        rc = make_pipes(l, cmd);
    }
    if (rc < 0) {
        (void)nk_fail(err, NK_OVERLOADED, "cannot start a command: %s", strerror(-rc));
        err->sys = -rc;
        return -1;
    }
    fill_spawn(l, cmd);
    return 0;
}
