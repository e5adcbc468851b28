#include "code/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/scope.h"
#include "code/event.h"

#define READ_SIZE 65536u
#define READ_MAX (1024u * 1024u) /* of one turn of the loop */
#define KEPT_MAX READ_SIZE       /* of an empty buffer */

static void on_ready(uv_poll_t *handle, int status, int events);

static void arm(struct nk_channel *c)
{
    int events = 0;

    if (c->fd < 0)
        return;
    if (!c->paused && !c->ended)
        events |= UV_READABLE;
    if (nk_buf_left(&c->out) > 0 && !c->ended)
        events |= UV_WRITABLE;
    if (events)
        (void)uv_poll_start(&c->poll, events, on_ready);
    else
        (void)uv_poll_stop(&c->poll);
}

static void end(struct nk_channel *c, const char *why)
{
    if (c->ended)
        return;
    c->ended = true;
    nk_buf_fini(&c->out);
    c->events->over(c, why);
}

static void give_back(struct nk_channel *c)
{
    if (nk_buf_left(&c->in) == 0 && c->in.cap > KEPT_MAX)
        nk_buf_fini(&c->in);
}

/* The owner may pause or close the channel from within. */
static void tell_lines(struct nk_channel *c)
{
    if (c->inside)
        return;
    c->inside = true;
    while (!c->paused && c->fd >= 0) {
        size_t left = nk_buf_left(&c->in);
        const uint8_t *front = nk_buf_front(&c->in);
        const uint8_t *stop = left > c->seen ? memchr(front + c->seen, '\n', left - c->seen) : NULL;
        size_t len = stop ? (size_t)(stop - front) : left;

        if (len > NK_EVENT_MAX) {
            end(c, "it said more in one line than it may");
            break;
        }
        c->seen = stop ? 0 : left;
        if (!stop)
            break;
        c->events->line(c, front, len);
        nk_buf_consume(&c->in, c->fd >= 0 ? len + 1 : 0);
    }
    c->inside = false;
    if (c->fd < 0)
        nk_buf_fini(&c->in);
    give_back(c);
}

static void read_some(struct nk_channel *c)
{
    for (size_t got = 0; got < READ_MAX && !c->paused && !c->ended && c->fd >= 0;) {
        uint8_t *room = nk_buf_reserve(&c->in, READ_SIZE);
        ssize_t n = room ? recv(c->fd, room, READ_SIZE, MSG_DONTWAIT) : -1;

        if (!room) {
            end(c, "there is no memory for what it says");
            return;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n <= 0) {
            end(c, NULL);
            return;
        }
        nk_buf_commit(&c->in, (size_t)n);
        got += (size_t)n;
        tell_lines(c);
        if ((size_t)n < READ_SIZE)
            break;
    }
    give_back(c);
}

static void write_some(struct nk_channel *c)
{
    while (nk_buf_left(&c->out) > 0 && !c->ended) {
        ssize_t n =
            send(c->fd, nk_buf_front(&c->out), nk_buf_left(&c->out), MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) { /* reading tells of the end, after what was said before it */
            nk_buf_fini(&c->out);
            return;
        }
        nk_buf_consume(&c->out, (size_t)n);
    }
    nk_buf_fini(&c->out);
}

static void on_ready(uv_poll_t *handle, int status, int events)
{
    struct nk_channel *c = handle->data;

    if (status < 0)
        events = UV_READABLE;
    if (events & UV_WRITABLE)
        write_some(c);
    if (events & UV_READABLE)
        read_some(c);
    arm(c);
}

int nk_channel_open(struct nk_channel *c, uv_loop_t *loop, int *out_child)
{
    int ends[2];
    int rc;

    c->fd = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    rc = uv_poll_init(loop, &c->poll, ends[0]);
    if (rc < 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return rc;
    }
    c->fd = ends[0];
    c->poll.data = c;
    *out_child = ends[1];
    arm(c);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct nk_channel *c = handle->data;

    c->events->released(c);
}

void nk_channel_close(struct nk_channel *c)
{
    if (c->fd < 0)
        return;
    uv_close((uv_handle_t *)&c->poll, on_closed);
    nk_close_fd(&c->fd);
    nk_buf_fini(&c->out);
    if (!c->inside)
        nk_buf_fini(&c->in);
}

void nk_channel_send(struct nk_channel *c, const void *data, size_t len)
{
    if (c->fd < 0 || c->ended)
        return;
    nk_buf_add(&c->out, data, len);
    if (c->out.failed) {
        end(c, "there is no memory for what it is told");
        return;
    }
    write_some(c);
    arm(c);
}

void nk_channel_answer(struct nk_channel *c, const void *data, size_t len)
{
    if (nk_buf_left(&c->out) == 0)
        nk_channel_send(c, data, len);
}

void nk_channel_pause(struct nk_channel *c, bool pause)
{
    if (c->paused == pause)
        return;
    c->paused = pause;
    if (!pause)
        tell_lines(c);
    arm(c);
}
