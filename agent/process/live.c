#include "process/live.h"

#include <stdlib.h>

#include "base/scope.h"
#include "process/terminal.h"

struct nk_live *nk_live_new(struct nk_process *p)
{
    struct nk_live *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->process = p;
    nk_process_ref(p);
    nk_list_append(nk_registry_lives(p->registry), &l->link);
    l->read_size = 512;
    for (int i = 0; i < 2; i++)
        l->out[i] = (struct nk_output){.live = l, .fd = -1, .stream = i ? NK_STDERR : NK_STDOUT};
    l->in.live = l;
    l->in.fd = -1;
    l->kept_input = -1;
    for (int i = 0; i < 3; i++)
        l->spawn.stdio[i] = -1;
    return l;
}

int nk_live_open(struct nk_live *l, uv_loop_t *loop)
{
    (void)uv_timer_init(loop, &l->timeout);
    (void)uv_timer_init(loop, &l->quiet);
    l->timeout.data = l;
    l->quiet.data = l;
    l->open_handles += 2;
    l->handles = true;
    nk_terminal_open(l, loop);
    for (int i = 0; i < 2; i++) {
        int rc = l->process->captures ? 0 : nk_output_open(&l->out[i]);

        if (rc < 0) {
            nk_close_fd(&l->out[i].fd);
            return rc;
        }
    }
    return nk_input_open(&l->in, loop);
}

static void free_live(struct nk_live *l)
{
    nk_buf_fini(&l->in.pending);
    free(l->terminal);
    free(l->envp);
    free(l);
}

void nk_live_unhandle(struct nk_live *l)
{
    if (--l->open_handles == 0 && l->closing)
        free_live(l);
}

static void on_timer_closed(uv_handle_t *handle)
{
    nk_live_unhandle(handle->data);
}

static void close_all(struct nk_live *l)
{
    struct nk_process *p = l->process;

    nk_list_remove(&l->link);
    l->closing = true;
    l->process = NULL;
    p->live = NULL;
    l->open_handles++; /* this function's own, so that nothing is freed under it */
    if (l->handles) {
        uv_close((uv_handle_t *)&l->timeout, on_timer_closed);
        uv_close((uv_handle_t *)&l->quiet, on_timer_closed);
    }
    nk_output_close(&l->out[0]);
    nk_output_close(&l->out[1]);
    nk_input_close(&l->in);
    nk_terminal_close(l);
    nk_hosted_let_go(l);
    for (int i = 0; i < 3; i++)
        nk_close_fd(&l->spawn.stdio[i]);
    if (l->spawn.channel > 0)
        nk_close_fd(&l->spawn.channel);
    nk_live_unhandle(l);
    nk_process_unref(p);
}

void nk_live_settle(struct nk_live *l)
{
    if (l->closing || l->process->state != NK_PROC_EXITED)
        return;
    if (l->out[0].fd < 0 && l->out[1].fd < 0)
        close_all(l);
}

void nk_live_abort(struct nk_live *l)
{
    if (!l->closing)
        close_all(l);
}

void nk_live_leave(struct nk_live *l)
{
    const struct nk_process *p = l->process;

    if (p->state == NK_PROC_STARTING) /* the starter still has it */
        return;
    if (p->state == NK_PROC_RUNNING && !p->reaped && !p->hosted)
        nk_reaper_forget(nk_registry_reaper(p->registry), &l->watch);
    close_all(l);
}
