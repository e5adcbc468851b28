#include "http/upstream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/job.h"
#include "base/scope.h"

#define UNSENT_MAX (128 * 1024) /* what the kernel holds of a server that does not read */

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

struct nk_upstream {
    struct nk_upstream_config cfg;
    struct nk_job job;
    uv_poll_t polls[2]; /* of the two families: the first may still be closing */
    uv_poll_t *poll;    /* the one in use, or NULL */
    uv_timer_t timer;   /* of the connecting */
    int family;
    int fd;   /* owned; -1 until the first job is back */
    int want; /* what -EAGAIN was said of */
    int mask; /* what is polled for */
    unsigned open_handles;
    bool connecting; /* and not known to be there */
    bool working;    /* a job has the struct */
    bool closed;
    /* the job's while it runs; in a word of its own: the loop's flags are read as one */
    int result; /* a socket, or -errno */
    bool allowed;
};

static void release(struct nk_upstream *u)
{
    if (u->open_handles > 0 || u->working)
        return;
    nk_close_fd(&u->fd);
    free(u);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct nk_upstream *u = handle->data;

    u->open_handles--;
    if (u->closed)
        release(u);
}

static void fail(struct nk_upstream *u, int error)
{
    struct nk_err err;

    (void)uv_timer_stop(&u->timer);
    if (error == -ECONNREFUSED)
        nk_fail(&err, NK_BAD_GATEWAY, "nothing listens on port %u of the sandbox's loopback",
                u->cfg.port);
    else if (error == -ETIMEDOUT)
        nk_fail(&err, NK_GATEWAY_TIMEOUT, "the server on port %u took no connection in time",
                u->cfg.port);
    else if (error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -ENOBUFS)
        nk_fail_sys(&err, ENOMEM, "cannot connect to port %u", u->cfg.port);
    else
        nk_fail(&err, NK_BAD_GATEWAY, "cannot connect to port %u: %s", u->cfg.port,
                strerror(-error));
    u->cfg.events->failed(u->cfg.ctx, &err);
}

static void on_event(uv_poll_t *poll, int status, int events);

static int watch(struct nk_upstream *u, int mask)
{
    int rc = 0;

    if (mask == u->mask || !u->poll)
        return 0;
    rc = mask ? uv_poll_start(u->poll, mask, on_event) : uv_poll_stop(u->poll);
    u->mask = rc < 0 ? u->mask : mask;
    return rc;
}

static void drop_socket(struct nk_upstream *u)
{
    if (u->poll)
        uv_close((uv_handle_t *)u->poll, on_handle_closed);
    u->poll = NULL;
    u->mask = 0;
    nk_close_fd(&u->fd);
}

/* In a job. A socket is its maker's for good, whoever connects it. */
static void make_socket(struct nk_job *job)
{
    struct nk_upstream *u = NK_CONTAINER_OF(job, struct nk_upstream, job);
    int fd;

    u->allowed = !u->cfg.may || u->cfg.may(u->cfg.who, u->family, u->cfg.port);
    if (!u->allowed)
        return;
    fd = socket(u->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    u->result = fd < 0 ? -errno : fd;
}

static void look_again(struct nk_job *job)
{
    struct nk_upstream *u = NK_CONTAINER_OF(job, struct nk_upstream, job);

    u->allowed = u->cfg.may(u->cfg.who, u->family, u->cfg.port);
}

static void submit(struct nk_upstream *u, void (*work)(struct nk_job *job),
                   void (*done)(struct nk_job *job, bool canceled))
{
    u->working = true;
    u->allowed = false;
    u->result = -ECONNREFUSED;
    u->job = (struct nk_job){.work = work, .done = done, .as = u->cfg.as, .share = u->cfg.share};
    nk_job_submit(u->cfg.jobs, &u->job);
}

static void on_socket(struct nk_job *job, bool canceled);

/* Servers that bind `localhost` may be on ::1 alone; where there is none of that either, the first
 * refusal is what counts. */
static void on_refused(struct nk_upstream *u, int error)
{
    if (u->family == AF_INET && error == -ECONNREFUSED) {
        u->family = AF_INET6;
        submit(u, make_socket, on_socket);
        return;
    }
    fail(u, u->family == AF_INET6 && error != -ETIMEDOUT ? -ECONNREFUSED : error);
}

static void become_open(struct nk_upstream *u)
{
    (void)uv_timer_stop(&u->timer);
    u->connecting = false;
    u->cfg.events->opened(u->cfg.ctx);
}

static void on_looked(struct nk_job *job, bool canceled)
{
    struct nk_upstream *u = NK_CONTAINER_OF(job, struct nk_upstream, job);

    u->working = false;
    if (u->closed)
        release(u);
    else if (canceled || !u->allowed)
        fail(u, -ECONNREFUSED);
    else
        become_open(u);
}

/* A port that nobody listens on may be the one that our own end was given: then we talk to us. */
static bool is_self(int fd)
{
    union address own, peer;
    socklen_t own_len = sizeof own, peer_len = sizeof peer;

    memset(&own, 0, sizeof own);
    memset(&peer, 0, sizeof peer);
    if (getsockname(fd, &own.any, &own_len) < 0 || getpeername(fd, &peer.any, &peer_len) < 0)
        return false;
    return own_len == peer_len && memcmp(&own, &peer, own_len) == 0;
}

static void on_connected(struct nk_upstream *u)
{
    int error = 0;
    socklen_t len = sizeof error;

    (void)watch(u, 0);
    if (getsockopt(u->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error == 0 && is_self(u->fd))
        error = ECONNREFUSED;
    if (error != 0) {
        drop_socket(u);
        on_refused(u, -error);
    } else if (u->cfg.may) {
        submit(u, look_again, on_looked);
    } else {
        become_open(u);
    }
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct nk_upstream *u = poll->data;
    int seen = status < 0 ? u->mask : events & u->mask;
    int now = seen & u->want;

    if (u->connecting) {
        on_connected(u);
        return;
    }
    /* Asked for again soon, most likely; only what comes unasked is not polled for any more. */
    (void)watch(u, u->mask & ~(seen & ~now));
    u->want &= ~now;
    if (now)
        u->cfg.events->ready(u->cfg.ctx, now & UV_READABLE, now & UV_WRITABLE);
}

static socklen_t set_address(const struct nk_upstream *u, union address *out)
{
    memset(out, 0, sizeof *out);
    if (u->family == AF_INET6) {
        out->in6.sin6_family = AF_INET6;
        out->in6.sin6_addr = in6addr_loopback;
        out->in6.sin6_port = htons(u->cfg.port);
        return sizeof out->in6;
    }
    out->in.sin_family = AF_INET;
    out->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    out->in.sin_port = htons(u->cfg.port);
    return sizeof out->in;
}

static int begin_connect(struct nk_upstream *u)
{
    static const int on = 1, unsent = UNSENT_MAX;
    union address a;
    socklen_t len = set_address(u, &a);
    uv_poll_t *poll = &u->polls[u->family == AF_INET6];
    int rc = uv_poll_init(u->cfg.loop, poll, u->fd);

    if (rc < 0)
        return rc;
    poll->data = u;
    u->poll = poll;
    u->open_handles++;
    (void)setsockopt(u->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(u->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    if (connect(u->fd, &a.any, len) < 0 && errno != EINPROGRESS && errno != EINTR)
        return -errno;
    return watch(u, UV_WRITABLE);
}

static void on_socket(struct nk_job *job, bool canceled)
{
    struct nk_upstream *u = NK_CONTAINER_OF(job, struct nk_upstream, job);
    int rc = u->result;

    u->working = false;
    if (!canceled && rc >= 0) {
        u->fd = rc;
        rc = u->closed ? 0 : begin_connect(u);
    } else if (job->switch_errno) {
        rc = -job->switch_errno;
    }
    if (u->closed) {
        release(u);
    } else if (rc < 0) {
        drop_socket(u);
        on_refused(u, rc);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct nk_upstream *u = timer->data;

    drop_socket(u);
    /* A job that is still at it hands its socket to nobody. */
    u->connecting = false;
    fail(u, -ETIMEDOUT);
}

int nk_upstream_open(const struct nk_upstream_config *cfg, struct nk_upstream **out)
{
    struct nk_upstream *u = calloc(1, sizeof *u);

    if (!u)
        return -ENOMEM;
    u->cfg = *cfg;
    u->fd = -1;
    u->family = AF_INET;
    u->connecting = true;
    (void)uv_timer_init(cfg->loop, &u->timer);
    u->timer.data = u;
    u->open_handles = 1;
    (void)uv_timer_start(&u->timer, on_timer, cfg->connect_ms, 0);
    submit(u, make_socket, on_socket);
    *out = u;
    return 0;
}

void nk_upstream_close(struct nk_upstream **slot)
{
    struct nk_upstream *u = *slot;

    if (!u)
        return;
    *slot = NULL;
    u->closed = true;
    drop_socket(u);
    uv_close((uv_handle_t *)&u->timer, on_handle_closed);
    if (u->working)
        nk_job_cancel(&u->job);
}

static ssize_t outcome(struct nk_upstream *u, ssize_t n, int error, int event)
{
    if (n >= 0)
        return n;
    if (error != EAGAIN && error != ENOBUFS)
        return -error;
    u->want |= event;
    return watch(u, u->mask | event) < 0 ? -ENOMEM : -EAGAIN;
}

ssize_t nk_upstream_read(struct nk_upstream *u, void *into, size_t len)
{
    ssize_t n;

    do
        n = recv(u->fd, into, len, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return outcome(u, n, errno, UV_READABLE);
}

ssize_t nk_upstream_write(struct nk_upstream *u, const struct iovec *iov, size_t count)
{
    struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = count};
    ssize_t n;

    do
        n = sendmsg(u->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return outcome(u, n, errno, UV_WRITABLE);
}

void nk_upstream_shut(struct nk_upstream *u)
{
    (void)shutdown(u->fd, SHUT_WR);
}
