#include "http/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/scope.h"
#include "http/conn.h"

#define ACCEPT_ROUNDS 16
#define REST_MS 100
/* The kernel doubles it: with our own piece a reader that stalls holds less than NK_REPLY_QUEUE. */
#define LOCAL_SEND_BUFFER (64 * 1024)
#define UNSENT_MAX (128 * 1024)

static void on_acceptable(uv_poll_t *poll, int status, int events);

static void on_rested(uv_timer_t *timer)
{
    struct nk_listener *l = timer->data;

    if (!l->server->accept_paused)
        nk_listener_start(l);
}

static void rest(struct nk_listener *l)
{
    nk_listener_stop(l);
    (void)uv_timer_start(&l->rest, on_rested, REST_MS, 0);
}

/* Each is an improvement only; a socket without it works. */
static void tune(const struct nk_listener *l, int fd)
{
    int on = 1;
    int unsent = UNSENT_MAX;
    int buffer = LOCAL_SEND_BUFFER;

    if (l->local) {
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

static bool is_passing(int error)
{
    return error == EINTR || error == ECONNABORTED || error == EPROTO || error == EPERM;
}

static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Whether to go on accepting in this event. */
static bool accept_one(struct nk_listener *l)
{
    struct nk_server *s = l->server;
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int error = errno;
    bool reserved = s->stats.open >= s->cfg.limits.conns_max;

    if (fd < 0) {
        if (is_shortage(error))
            rest(l);
        return is_passing(error);
    }
    s->stats.accepted++;
    s->stats.refused += reserved;
    tune(l, fd);
    if (nk_conn_open(s, fd, l->local, reserved) < 0)
        rest(l);
    return !s->accept_paused && uv_is_active((uv_handle_t *)&l->poll);
}

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
    struct nk_listener *l = poll->data;

    (void)events;
    if (status < 0) {
        rest(l);
        return;
    }
    for (int i = 0; i < ACCEPT_ROUNDS; i++) {
        if (!accept_one(l))
            return;
    }
}

void nk_listener_start(struct nk_listener *l)
{
    if (uv_is_closing((uv_handle_t *)&l->poll))
        return;
    if (uv_poll_start(&l->poll, UV_READABLE, on_acceptable) < 0)
        (void)uv_timer_start(&l->rest, on_rested, REST_MS, 0);
}

void nk_listener_stop(struct nk_listener *l)
{
    if (!uv_is_closing((uv_handle_t *)&l->poll))
        (void)uv_poll_stop(&l->poll);
}

static void on_closed(uv_handle_t *handle)
{
    struct nk_listener *l = handle->data;
    struct nk_server *s = l->server;

    if (--l->open_handles > 0)
        return;
    free(l);
    nk_server_release(s);
}

void nk_listener_close(struct nk_listener *l)
{
    nk_list_remove(&l->link);
    uv_close((uv_handle_t *)&l->poll, on_closed);
    uv_close((uv_handle_t *)&l->rest, on_closed);
    nk_close_fd(&l->fd);
    nk_bind_file_fini(&l->file);
}

unsigned nk_listener_port(const struct nk_listener *l)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } a = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t len = sizeof a;

    if (getsockname(l->fd, &a.any, &len) < 0)
        return 0;
    if (a.any.sa_family == AF_INET)
        return ntohs(a.in.sin_port);
    return a.any.sa_family == AF_INET6 ? ntohs(a.in6.sin6_port) : 0;
}

int nk_listener_open(struct nk_server *s, int fd, struct nk_bind_file *file, bool local)
{
    struct nk_listener *l = calloc(1, sizeof *l);
    int rc = l ? uv_poll_init(s->loop, &l->poll, fd) : -ENOMEM;

    if (rc < 0) {
        free(l);
        (void)close(fd);
        nk_bind_file_fini(file);
        return rc;
    }
    (void)uv_timer_init(s->loop, &l->rest);
    l->server = s;
    l->fd = fd;
    l->file = *file;
    l->local = local;
    l->poll.data = l;
    l->rest.data = l;
    l->open_handles = 2;
    nk_list_append(&s->listeners, &l->link);
    s->members++;
    nk_listener_start(l);
    return 0;
}
