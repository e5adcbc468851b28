#include <errno.h>
#include <unistd.h>

#include "base/scope.h"
#include "process/pty.h"
#include "process/terminal.h"

static void on_closed(uv_handle_t *handle)
{
    nk_live_unhandle(((struct nk_input *)handle->data)->live);
}

void nk_input_close(struct nk_input *in)
{
    if (in->handle) {
        in->handle = false;
        uv_close((uv_handle_t *)&in->poll, on_closed);
    }
    nk_close_fd(&in->fd);
    nk_buf_fini(&in->pending);
}

/* How much of it; 0: there is no room now. The program's own end of its input (EPIPE; EIO of a
 * terminal) drops what is left: -1. */
static ssize_t write_some(struct nk_input *in, const uint8_t *data, size_t len)
{
    ssize_t n;

    do
        n = write(in->fd, data, len);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n < 0)
        nk_input_close(in);
    else
        in->last = data[n - 1];
    return n;
}

/* Only now is it known which character it is, and whether the line is empty. */
static bool write_end(struct nk_input *in)
{
    if (!in->live->terminal)
        return true;
    if (!in->ending) {
        in->ending = true;
        in->eof_left = (uint8_t)nk_pty_end_of_input(in->fd, in->last, &in->eof);
    }
    while (in->eof_left > 0) {
        ssize_t n = write_some(in, &in->eof, 1);

        if (n <= 0)
            return n < 0;
        in->eof_left--;
    }
    nk_terminal_input_ended(in->live);
    return true;
}

/* Whether all is written, or is not wanted any more. */
static bool write_pending(struct nk_input *in)
{
    while (nk_buf_left(&in->pending) > 0) {
        ssize_t n = write_some(in, nk_buf_front(&in->pending), nk_buf_left(&in->pending));

        if (n <= 0)
            return n < 0;
        nk_buf_consume(&in->pending, (size_t)n);
    }
    return !in->close_after || write_end(in);
}

static void on_writable(uv_poll_t *handle, int status, int events)
{
    struct nk_input *in = handle->data;
    struct nk_process *p = in->live->process;

    (void)events;
    if (status < 0) {
        nk_input_close(in);
    } else if (write_pending(in) && in->fd >= 0) {
        (void)uv_poll_stop(&in->poll);
        nk_buf_fini(&in->pending);
        if (in->close_after)
            nk_input_close(in);
    }
    nk_process_emit(p, NK_PROC_EV_INPUT, NULL);
}

int nk_input_open(struct nk_input *in, uv_loop_t *loop)
{
    int rc;

    if (in->fd < 0)
        return 0;
    rc = uv_poll_init(loop, &in->poll, in->fd);
    if (rc < 0)
        return rc;
    in->poll.data = in;
    in->handle = true;
    in->live->open_handles++;
    return 0;
}

void nk_input_push(struct nk_input *in)
{
    if (in->fd < 0)
        return;
    if (!write_pending(in)) {
        if (in->handle)
            (void)uv_poll_start(&in->poll, UV_WRITABLE, on_writable);
        return;
    }
    if (in->close_after)
        nk_input_close(in);
}
