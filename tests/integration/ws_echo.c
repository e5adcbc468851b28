/* A WebSocket echo server on base and http alone, for the protocol's test suites: the daemon has no
 * route that says everything twice.
 *
 * usage: ws_echo PORT [MESSAGE_MAX]    on 127.0.0.1; 0: any; prints the port, ends with TERM */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "base/attr.h"
#include "base/job.h"
#include "http/reply.h"
#include "http/server.h"
#include "http/ws_conn.h"

#define QUEUE_MAX (1024u * 1024u) /* above it nothing more is read */

struct echo_app {
    uv_loop_t loop;
    struct nk_server *server;
    size_t message_max; /* 0: the usual limits */
    uv_signal_t term;
};

struct echo {
    struct nk_ws_conn conn;
    struct nk_buf queue;
};

static void on_message(struct nk_ws_conn *c, enum nk_ws_kind kind, const uint8_t *data, size_t len)
{
    struct echo *e = NK_CONTAINER_OF(c, struct echo, conn);

    nk_ws_add(&e->queue, kind, data, len, NULL);
    if (nk_buf_left(&e->queue) > QUEUE_MAX)
        nk_ws_conn_pause(c, true);
    nk_ws_conn_wake(c);
}

static enum nk_pull on_pull(struct nk_ws_conn *c, struct nk_buf *out, size_t room)
{
    struct echo *e = NK_CONTAINER_OF(c, struct echo, conn);
    size_t n = nk_buf_left(&e->queue) < room ? nk_buf_left(&e->queue) : room;

    if (e->queue.failed)
        return NK_PULL_FAIL;
    if (n > 0)
        nk_buf_add(out, nk_buf_front(&e->queue), n);
    nk_buf_consume(&e->queue, n);
    if (nk_buf_left(&e->queue) < QUEUE_MAX / 2)
        nk_ws_conn_pause(c, false);
    return nk_buf_left(&e->queue) > 0 ? NK_PULL_MORE : NK_PULL_WAIT;
}

static void on_over(struct nk_ws_conn *c)
{
    (void)c;
}

static void on_released(struct nk_ws_conn *c)
{
    struct echo *e = NK_CONTAINER_OF(c, struct echo, conn);

    nk_buf_fini(&e->queue);
    free(e);
}

static int handle_echo(struct nk_req *req, struct nk_err *err)
{
    static const struct nk_ws_events events = {on_message, on_pull, on_over, on_released};
    struct echo_app *app = nk_req_app(req);
    struct echo *e = calloc(1, sizeof *e);

    if (!e)
        return nk_fail(err, NK_OVERLOADED, "no memory");
    e->conn.events = &events;
    if (app->message_max > 0)
        e->conn.limits = (struct nk_ws_limits){app->message_max, UINT32_MAX};
    nk_ws_conn_open(&e->conn, req, &app->loop, "nook.v1");
    return 0;
}

static int gate(struct nk_req *req, struct nk_err *err)
{
    (void)req;
    (void)err;
    return 0;
}

static void problem(struct nk_req *req, const struct nk_err *err)
{
    int status = err->code == NK_UPGRADE_REQUIRED ? 426 : err->code == NK_NOT_FOUND ? 404 : 400;

    nk_reply_bytes(req, status, "text/plain", err->msg, 0);
}

static void finished(struct nk_req *req, int status, bool gone)
{
    (void)req;
    (void)status;
    (void)gone;
}

static void on_term(uv_signal_t *handle, int signo)
{
    struct echo_app *app = handle->data;

    (void)signo;
    nk_server_close(&app->server);
    uv_close((uv_handle_t *)handle, NULL);
}

static int serve(struct echo_app *app, struct nk_jobs *jobs, const char *port)
{
    static const struct nk_route routes[] = {
        {"GET", "/", "echo", handle_echo, .websocket = 1},
    };
    const struct nk_server_config cfg = {
        .routes = routes,
        .route_count = 1,
        .hooks = {gate, problem, finished, app},
        .limits = {.header_max = 16384,
                   .header_lines_max = 100,
                   .url_max = 8192,
                   .chunk_line_max = 256,
                   .json_max = 65536,
                   .conns_max = 1000},
        .instance = "echo",
        .jobs = jobs,
    };
    unsigned bound;
    char addr[32];
    struct nk_err err;

    (void)snprintf(addr, sizeof addr, "127.0.0.1:%s", port);
    if (nk_server_open(&app->loop, &cfg, &app->server) < 0)
        return -1;
    if (nk_server_listen_tcp(app->server, addr, &bound, &err) < 0) {
        (void)fprintf(stderr, "ws_echo: %s\n", err.msg);
        return -1;
    }
    (void)printf("%u\n", bound);
    return fflush(stdout) == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    static struct echo_app app;
    struct nk_jobs *jobs = NULL;
    int rc;

    if (argc < 2) {
        (void)fprintf(stderr, "usage: ws_echo PORT [MESSAGE_MAX]\n");
        return 2;
    }
    app.message_max = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    (void)signal(SIGPIPE, SIG_IGN);
    if (uv_loop_init(&app.loop) < 0 || nk_jobs_new(&app.loop, &jobs) < 0 ||
        uv_signal_init(&app.loop, &app.term) < 0)
        return 1;
    app.term.data = &app;
    rc = serve(&app, jobs, argv[1]);
    if (rc == 0)
        rc = uv_signal_start(&app.term, on_term, SIGTERM);
    if (rc < 0)
        return 1;
    (void)uv_run(&app.loop, UV_RUN_DEFAULT);
    nk_jobs_free(jobs);
    return uv_loop_close(&app.loop) == 0 ? 0 : 1;
}
