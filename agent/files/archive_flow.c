/* The bytes of an archive: between its worker's pipes and whoever opened it. */
#include <errno.h>

#include "base/clock.h"
#include "files/archive_inside.h"

void nk_archive_kill(const struct nk_archive *a)
{
    if (a->running)
        (void)kill(a->watch.pid, SIGKILL);
}

void nk_archive_tell_more(const struct nk_archive *a)
{
    if (!a->closed)
        a->events.more(a->events.ctx);
}

void nk_archive_moved(struct nk_archive *a)
{
    a->moved_ms = nk_clock_mono_ms();
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct nk_archive *a = poll->data;

    (void)status;
    (void)events;
    (void)uv_poll_stop(poll);
    a->hungry = false;
    nk_archive_tell_more(a);
}

ssize_t nk_archive_read(struct nk_archive *a, void *out, size_t len)
{
    ssize_t n;

    if (a->over && a->last.err.code != NK_OK)
        return -EIO;
    n = nk_archive_pipe_read(&a->out, out, len);
    if (n > 0) {
        nk_archive_moved(a);
        return n;
    }
    if (n < 0 && n != -EAGAIN)
        return -EIO;
    /* Somebody else may hold the pipe open; once the worker is gone nothing comes from it. */
    if (a->over && (n == 0 || !a->running))
        return 0;
    a->hungry = true;
    if (n < 0)
        (void)uv_poll_start(&a->out.poll, UV_READABLE, on_readable);
    return -EAGAIN;
}

static bool can_move(const struct nk_archive *a, const struct nk_archive_pipe *p)
{
    return !a->copies && p->fd >= 0 && !(a->over && a->last.err.code != NK_OK);
}

/* Where the kernel cannot, or may not, bytes are copied from then on. */
static ssize_t note_move(struct nk_archive *a, ssize_t n)
{
    if (n > 0)
        nk_archive_moved(a);
    else if (n < 0 && n != -EAGAIN)
        a->copies = true;
    return n;
}

size_t nk_archive_ready(const struct nk_archive *a)
{
    return can_move(a, &a->out) ? nk_archive_pipe_ready(&a->out) : 0;
}

ssize_t nk_archive_send(struct nk_archive *a, int socket, size_t len)
{
    return note_move(a, a->copies ? -EINVAL : nk_archive_pipe_send(&a->out, socket, len));
}

/* What the pipe takes of it; all where the worker reads no more, and will say why. */
static size_t push(struct nk_archive *a, const void *data, size_t len)
{
    ssize_t n = nk_archive_pipe_write(&a->in, data, len);

    if (n > 0)
        nk_archive_moved(a);
    return n < 0 ? len : (size_t)n;
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    struct nk_archive *a = poll->data;

    (void)status;
    (void)events;
    nk_buf_consume(&a->pending, push(a, nk_buf_front(&a->pending), nk_buf_left(&a->pending)));
    if (nk_buf_left(&a->pending) > 0)
        return;
    (void)uv_poll_stop(poll);
    a->full = false;
    if (a->ended)
        nk_archive_close_pipe(&a->in);
    else
        nk_archive_tell_more(a);
}

bool nk_archive_write(struct nk_archive *a, const void *data, size_t len)
{
    const uint8_t *at = data;

    if (a->in.fd < 0)
        return false;
    if (nk_buf_left(&a->pending) == 0) {
        size_t done = push(a, at, len);

        at += done;
        len -= done;
    }
    if (len == 0)
        return false;
    nk_buf_add(&a->pending, at, len);
    if (a->pending.failed) {
        /* An archive with a gap must not look whole. */
        nk_archive_kill(a);
        nk_buf_fini(&a->pending);
        return false;
    }
    (void)uv_poll_start(&a->in.poll, UV_WRITABLE, on_writable);
    return true;
}

ssize_t nk_archive_take(struct nk_archive *a, int socket, size_t max)
{
    ssize_t n;

    if (!can_move(a, &a->in) || nk_buf_left(&a->pending) > 0)
        return 0;
    n = note_move(a, nk_archive_pipe_take(&a->in, socket, max));
    if (n != -EAGAIN)
        return n < 0 ? 0 : n;
    a->full = true;
    (void)uv_poll_start(&a->in.poll, UV_WRITABLE, on_writable);
    return n;
}

void nk_archive_end(struct nk_archive *a)
{
    a->ended = true;
    nk_archive_moved(a);
    if (nk_buf_left(&a->pending) == 0)
        nk_archive_close_pipe(&a->in);
}
