#include "http/server.h"

#include <errno.h>
#include <stdlib.h>

#include "http/conn.h"
#include "http/inside.h"
#include "http/listener.h"

static void check_drained(struct nk_server *s)
{
    void (*drained)(void *ctx) = s->drained;

    if (!s->draining || !drained || s->stats.open > 0)
        return;
    s->drained = NULL;
    drained(s->drained_ctx);
}

static struct nk_conn *due_conn(struct nk_list *node)
{
    return nk_list_entry(node, struct nk_conn, due);
}

/* What is touched meanwhile waits for the next round of the loop, so that others get their turn. */
static void on_later(uv_idle_t *idle)
{
    struct nk_server *s = idle->data;
    struct nk_list now;

    nk_list_init(&now);
    while (!nk_list_empty(&s->due)) {
        struct nk_list *node = s->due.next;

        nk_list_remove(node);
        nk_list_append(&now, node);
    }
    while (!nk_list_empty(&now))
        nk_conn_step(due_conn(now.next));
    if (nk_list_empty(&s->due))
        (void)uv_idle_stop(idle);
    check_drained(s); /* where nobody was connected, no close will tell */
}

void nk_server_wake(struct nk_server *s)
{
    if (!s->closing)
        (void)uv_idle_start(&s->later, on_later);
}

void nk_server_release(struct nk_server *s)
{
    if (--s->members == 0)
        free(s);
}

static unsigned room(const struct nk_server *s)
{
    unsigned all = s->cfg.limits.conns_max + s->cfg.limits.conns_reserved;

    return s->stats.open < all ? all - s->stats.open : 0;
}

static void pause_accept(struct nk_server *s, bool pause)
{
    if (s->accept_paused == pause)
        return;
    s->accept_paused = pause;
    for (struct nk_list *n = s->listeners.next; n != &s->listeners; n = n->next) {
        if (pause)
            nk_listener_stop(nk_list_entry(n, struct nk_listener, link));
        else
            nk_listener_start(nk_list_entry(n, struct nk_listener, link));
    }
}

void nk_server_on_conn_opened(struct nk_server *s)
{
    s->members++;
    s->stats.open++;
    if (room(s) == 0)
        pause_accept(s, true);
}

void nk_server_on_conn_closed(struct nk_server *s)
{
    s->stats.open--;
    if (!s->closing)
        pause_accept(s, false);
    check_drained(s);
}

static void on_idle_closed(uv_handle_t *handle)
{
    nk_server_release(handle->data);
}

int nk_server_open(uv_loop_t *loop, const struct nk_server_config *cfg, struct nk_server **out)
{
    struct nk_server *s = calloc(1, sizeof *s);

    if (!s)
        return -ENOMEM;
    s->loop = loop;
    s->cfg = *cfg;
    nk_list_init(&s->conns);
    nk_list_init(&s->listeners);
    nk_list_init(&s->due);
    (void)uv_idle_init(loop, &s->later);
    s->later.data = s;
    s->members = 1;
    *out = s;
    return 0;
}

static int open_listener(struct nk_server *s, int fd, struct nk_bind_file *file, bool local,
                         struct nk_err *err)
{
    int rc = nk_listener_open(s, fd, file, local);

    return rc < 0 ? nk_fail_sys(err, -rc, "cannot listen") : 0;
}

int nk_server_listen_tcp(struct nk_server *s, const char *addr, unsigned *out_port,
                         struct nk_err *err)
{
    struct nk_bind_file none = {0};
    unsigned port = 0;
    int fd = -1;

    if (nk_bind_tcp(addr, &fd, &port, err) < 0 || open_listener(s, fd, &none, false, err) < 0)
        return -1;
    *out_port = port;
    return 0;
}

int nk_server_listen_unix(struct nk_server *s, const char *path, struct nk_err *err)
{
    struct nk_bind_file file = {0};
    int fd = -1;

    if (nk_bind_unix(path, &fd, &file, err) < 0)
        return -1;
    return open_listener(s, fd, &file, true, err);
}

int nk_server_listen_vsock(struct nk_server *s, unsigned port, struct nk_err *err)
{
    struct nk_bind_file none = {0};
    int fd = -1;

    if (nk_bind_vsock(port, &fd, err) < 0)
        return -1;
    return open_listener(s, fd, &none, false, err);
}

bool nk_server_has_port(const struct nk_server *s, unsigned port)
{
    for (const struct nk_list *n = s->listeners.next; n != &s->listeners; n = n->next) {
        if (nk_listener_port(nk_list_entry(n, struct nk_listener, link)) == port)
            return true;
    }
    return false;
}

static void close_listeners(struct nk_server *s)
{
    while (!nk_list_empty(&s->listeners))
        nk_listener_close(nk_list_entry(s->listeners.next, struct nk_listener, link));
}

void nk_server_drain(struct nk_server *s, void (*drained)(void *ctx), void *ctx)
{
    s->draining = true;
    s->drained = drained;
    s->drained_ctx = ctx;
    close_listeners(s);
    for (struct nk_list *n = s->conns.next; n != &s->conns; n = n->next)
        nk_conn_touch(nk_list_entry(n, struct nk_conn, link));
    nk_server_wake(s);
}

void nk_server_close(struct nk_server **slot)
{
    struct nk_server *s = *slot;
    struct nk_list *next;

    if (!s)
        return;
    *slot = NULL;
    s->closing = true;
    s->drained = NULL;
    close_listeners(s);
    for (struct nk_list *n = s->conns.next; n != &s->conns; n = next) {
        next = n->next;
        nk_conn_cut(nk_list_entry(n, struct nk_conn, link));
    }
    uv_close((uv_handle_t *)&s->later, on_idle_closed);
}

const struct nk_http_stats *nk_server_stats(const struct nk_server *s)
{
    return &s->stats;
}
