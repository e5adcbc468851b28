#include <errno.h>
#include <unistd.h>

#include "base/scope.h"
#include "process/live.h"

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

/* Whether all is written. The program's own end of its input (EPIPE) drops what is left. */
static bool write_pending(struct nk_input *in)
{
    while (nk_buf_left(&in->pending) > 0) {
        ssize_t n = write(in->fd, nk_buf_front(&in->pending), nk_buf_left(&in->pending));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return false;
        if (n < 0) {
            nk_input_close(in);
            return true;
        }
        nk_buf_consume(&in->pending, (size_t)n);
    }
    return true;
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
