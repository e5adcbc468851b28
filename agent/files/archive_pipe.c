#include "files/archive_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/scope.h"

#define PIPE_SIZE (512 * 1024)
#define DRAIN_PIECE 16384

int nk_archive_pipe_open(struct nk_archive_pipe *p, uv_loop_t *loop, bool write, int *out_theirs)
{
    int ends[2], rc;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    (void)fcntl(ends[0], F_SETPIPE_SZ, PIPE_SIZE);
    *out_theirs = ends[write ? 0 : 1];
    p->fd = ends[write ? 1 : 0];
    rc = fcntl(p->fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
    if (rc == 0)
        rc = uv_poll_init(loop, &p->poll, p->fd);
    if (rc < 0)
        nk_close_fd(&p->fd);
    return rc;
}

bool nk_archive_pipe_close(struct nk_archive_pipe *p, uv_close_cb closed)
{
    if (p->fd < 0)
        return false;
    uv_close((uv_handle_t *)&p->poll, closed);
    nk_close_fd(&p->fd);
    return true;
}

ssize_t nk_archive_pipe_read(const struct nk_archive_pipe *p, void *out, size_t len)
{
    ssize_t n;

    do
        n = p->fd >= 0 ? read(p->fd, out, len) : 0;
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t nk_archive_pipe_write(const struct nk_archive_pipe *p, const void *data, size_t len)
{
    const char *at = data;
    size_t done = 0;

    while (done < len) {
        ssize_t n = write(p->fd, at + done, len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            return -errno;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

bool nk_archive_pipe_drain(const struct nk_archive_pipe *p, struct nk_buf *out)
{
    for (;;) {
        uint8_t *room = nk_buf_reserve(out, DRAIN_PIECE);
        ssize_t n = room ? nk_archive_pipe_read(p, room, DRAIN_PIECE) : 0;

        if (n <= 0)
            return n == -EAGAIN;
        nk_buf_commit(out, (size_t)n);
    }
}

size_t nk_archive_pipe_ready(const struct nk_archive_pipe *p)
{
    int n = 0;

    return p->fd >= 0 && ioctl(p->fd, FIONREAD, &n) == 0 && n > 0 ? (size_t)n : 0;
}

static ssize_t move(int from, int to, size_t max)
{
    ssize_t n;

    do
        n = splice(from, NULL, to, NULL, max, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t nk_archive_pipe_take(const struct nk_archive_pipe *p, int socket, size_t max)
{
    struct pollfd room = {.fd = p->fd, .events = POLLOUT};
    ssize_t n = move(socket, p->fd, max);

    return n == -EAGAIN && poll(&room, 1, 0) != 0 ? 0 : n;
}

ssize_t nk_archive_pipe_send(const struct nk_archive_pipe *p, int socket, size_t max)
{
    return move(p->fd, socket, max);
}
