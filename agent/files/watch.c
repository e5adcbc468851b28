#include "files/watch.h"

#include <stdlib.h>
#include <string.h>

#include "files/task.h"
#include "files/watch_read.h"

struct nk_watch {
    struct nk_task task;
    struct nk_watch_config cfg;
    char *path; /* owned */
    uv_poll_t poll;
    bool polling; /* the handle is open */
    bool ready;
    bool closed;
    /* the task's while it runs */
    struct nk_watch_read read;
    bool opened;
    bool told; /* on_event was called since the last batch */
};

static bool on_event(void *ctx, const struct nk_watch_event *event)
{
    struct nk_watch *w = ctx;

    w->told = true;
    return w->cfg.events->on_event(w->cfg.ctx, event);
}

static int on_slice(struct nk_task *t)
{
    struct nk_watch *w = NK_CONTAINER_OF(t, struct nk_watch, task);

    if (!w->opened &&
        nk_watch_read_open(&w->read, w->cfg.roots, w->path, w->cfg.path_len, &t->err) < 0)
        return -1;
    w->opened = true;
    return nk_watch_read_go(&w->read, t);
}

static void start(struct nk_watch *w)
{
    w->told = false;
    w->read.full = false;
    nk_task_start(&w->task, w->cfg.jobs, w->cfg.as, w->cfg.share);
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
    struct nk_watch *w = handle->data;

    (void)status;
    (void)events;
    (void)uv_poll_stop(handle);
    start(w);
}

static void poll_again(struct nk_watch *w)
{
    (void)uv_poll_start(&w->poll, UV_READABLE, on_readable);
}

static void release(struct nk_watch *w)
{
    w->cfg.events->on_closed(w->cfg.ctx);
    nk_watch_read_fini(&w->read);
    free(w->path);
    free(w);
}

static void on_handle_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void close_all(struct nk_watch *w)
{
    if (w->polling)
        uv_close((uv_handle_t *)&w->poll, on_handle_closed);
    else
        release(w);
}

/* The first run is over: the watch stands. */
static void become_ready(struct nk_watch *w)
{
    struct nk_err *err = &w->task.err;
    int rc = w->task.result;

    if (rc == 0 && uv_poll_init(w->cfg.loop, &w->poll, w->read.inotify) < 0)
        rc = nk_fail(err, NK_OVERLOADED, "the watch cannot be polled");
    w->polling = rc == 0;
    w->poll.data = w;
    w->ready = rc == 0;
    w->cfg.events->on_ready(w->cfg.ctx, rc < 0 ? err : NULL);
    if (rc < 0 || w->closed)
        return;
    if (w->told || w->read.ended)
        w->cfg.events->on_batch(w->cfg.ctx, w->read.ended);
    else
        poll_again(w);
}

static void on_over(struct nk_task *t)
{
    struct nk_watch *w = NK_CONTAINER_OF(t, struct nk_watch, task);

    if (w->closed)
        close_all(w);
    else if (!w->ready)
        become_ready(w);
    else if (w->told || w->read.ended || t->result < 0)
        w->cfg.events->on_batch(w->cfg.ctx, w->read.ended || t->result < 0);
    else
        poll_again(w);
}

int nk_watch_open(const struct nk_watch_config *cfg, struct nk_watch **out, struct nk_err *err)
{
    struct nk_watch *w = calloc(1, sizeof *w);

    if (w)
        w->path = malloc(cfg->path_len + 1);
    if (!w || !w->path) {
        free(w);
        return nk_fail(err, NK_OVERLOADED, "no memory for this watch");
    }
    memcpy(w->path, cfg->path, cfg->path_len);
    w->path[cfg->path_len] = '\0';
    w->cfg = *cfg;
    w->cfg.path = w->path;
    w->read.top = w->read.inotify = w->read.parent = -1;
    w->read.recursive = cfg->recursive;
    w->read.tell = on_event;
    w->read.ctx = w;
    w->task.slice = on_slice;
    w->task.over = on_over;
    start(w);
    *out = w;
    return 0;
}

/* There may be more that was read already: that first, then the kernel is asked. */
void nk_watch_resume(struct nk_watch *w)
{
    start(w);
}

void nk_watch_close(struct nk_watch **slot)
{
    struct nk_watch *w = *slot;

    if (!w)
        return;
    *slot = NULL;
    w->closed = true;
    if (w->task.running)
        nk_task_stop(&w->task);
    else
        close_all(w);
}
