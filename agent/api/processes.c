/* /v1/processes: list, show, kill, resize, forget. */
#include <signal.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/handlers.h"
#include "api/look.h"
#include "api/read.h"
#include "api/whose.h"
#include "api/wire.h"
#include "base/json.h"
#include "http/reply.h"
#include "http/request.h"

#define WAIT_MAX_MS 60000

/* One GET of a process or of the list: waits for the end if asked, looks, replies. */
struct view {
    struct nk_look look;
    struct nk_watcher watcher; /* of the one that is shown */
    struct nk_req *req;        /* borrowed: NULL once it is over */
    uv_timer_t wait;
    bool timer_open;
    bool looking;
    bool running_only; /* of a list */
    size_t limit;
};

static void free_view(struct view *v)
{
    free(v->look.ports);
    free(v);
}

static void write_one(struct view *v, struct nk_json_out *o, const struct nk_process *p)
{
    uint16_t ports[NK_LOOK_PORTS];
    size_t count = nk_look_ports(&v->look, p, ports);

    nk_json_out_open(o, NULL, '{');
    nk_wire_process(o, p, ports, count);
    nk_json_out_close(o, '}');
}

static void write_list(struct view *v, struct nk_json_out *o)
{
    struct nk_api *api = nk_req_app(v->req);
    struct nk_owner *owner = nk_req_identity(v->req);
    size_t max = nk_registry_size(api->processes, owner);
    struct nk_process **list = calloc(max ? max : 1, sizeof(struct nk_process *));
    size_t count;

    if (!list) {
        o->buf->failed = true;
        return;
    }
    count = nk_registry_list(api->processes, owner, v->running_only, list, max);
    nk_json_out_open(o, NULL, '{');
    nk_json_out_open(o, "processes", '[');
    for (size_t i = 0; i < count && i < v->limit; i++)
        write_one(v, o, list[i]);
    nk_json_out_close(o, ']');
    nk_json_out_close(o, '}');
    free(list);
}

static void on_looked(struct nk_look *look)
{
    struct view *v = NK_CONTAINER_OF(look, struct view, look);
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};

    if (look->dropped) {
        free_view(v);
        return;
    }
    if (v->watcher.process)
        write_one(v, &o, v->watcher.process);
    else
        write_list(v, &o);
    nk_wire_reply(v->req, 200, &body);
}

static bool may_listen(const struct nk_process *p)
{
    return p->state == NK_PROC_RUNNING || p->tree;
}

/* In a list every record may; the one that is shown is asked. */
static bool is_wanted(const struct nk_look *look)
{
    const struct view *v = NK_CONTAINER_OF(look, const struct view, look);

    return !v->watcher.process || may_listen(v->watcher.process);
}

static void look(struct view *v)
{
    const struct nk_process *p = v->watcher.process;

    if (v->looking)
        return;
    v->looking = true;
    if (v->timer_open)
        (void)uv_timer_stop(&v->wait);
    nk_look_start(&v->look, nk_req_app(v->req), nk_whose_of(v->req).user,
                  !p || p->state == NK_PROC_EXITED);
}

static void on_event(struct nk_watcher *w, enum nk_proc_event ev, const struct nk_err *err)
{
    struct view *v = NK_CONTAINER_OF(w, struct view, watcher);

    (void)err;
    if (ev == NK_PROC_EV_EXITED || ev == NK_PROC_EV_FAILED)
        look(v);
}

static void on_wait_over(uv_timer_t *timer)
{
    look(timer->data);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct view *v = handle->data;

    if (nk_look_drop(&v->look))
        free_view(v);
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct view *v = ctx;

    (void)req;
    (void)gone;
    v->req = NULL;
    nk_watcher_detach(&v->watcher);
    if (v->timer_open)
        uv_close((uv_handle_t *)&v->wait, on_timer_closed);
    else if (nk_look_drop(&v->look))
        free_view(v);
}

static struct view *new_view(struct nk_req *req, struct nk_err *err)
{
    struct view *v = calloc(1, sizeof *v);

    if (!v) {
        (void)nk_fail(err, NK_OVERLOADED, "no memory for this request");
        return NULL;
    }
    v->req = req;
    v->look.done = on_looked;
    v->look.wanted = is_wanted;
    nk_req_on_close(req, on_close, v);
    return v;
}

int nk_api_process_list(struct nk_req *req, struct nk_err *err)
{
    uint64_t limit = NK_READ_LIST_MAX;
    bool running = false;
    struct view *v;

    if (nk_req_query_bool(req, "running", &running, err) < 0 ||
        nk_req_query_u64(req, "limit", NK_READ_LIST_MAX, &limit, err) < 0)
        return -1;
    v = new_view(req, err);
    if (!v)
        return -1;
    v->running_only = running;
    v->limit = (size_t)limit;
    look(v);
    return 0;
}

int nk_api_process_show(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    struct nk_process *p = nk_read_process(req, err);
    uint64_t wait_ms = 0;
    struct view *v;

    if (!p || nk_read_wait(req, WAIT_MAX_MS, &wait_ms, err) < 0)
        return -1;
    v = new_view(req, err);
    if (!v)
        return -1;
    v->watcher.on_event = on_event;
    nk_watcher_attach(&v->watcher, p);
    if (wait_ms == 0 || p->state == NK_PROC_EXITED) {
        look(v);
        return 0;
    }
    (void)uv_timer_init(api->loop, &v->wait);
    v->wait.data = v;
    v->timer_open = true;
    (void)uv_timer_start(&v->wait, on_wait_over, wait_ms, 0);
    return 0;
}

int nk_api_process_kill(struct nk_req *req, struct nk_err *err)
{
    static const char *const fields[] = {"signal", "tree"};
    const struct nk_json *body = nk_req_json(req);
    struct nk_process *p = nk_read_process(req, err);
    int signo = SIGTERM;
    bool tree = true;

    if (!p || nk_json_only(body, fields, NK_COUNT(fields), err) < 0 ||
        nk_read_signal(body, &signo, err) < 0 || nk_json_read_bool(body, "tree", &tree, err) < 0)
        return -1;
    nk_process_signal(p, signo, tree);
    nk_wire_reply_process(req, 200, p);
    return 0;
}

int nk_api_process_resize(struct nk_req *req, struct nk_err *err)
{
    static const char *const fields[] = {"cols", "rows"};
    const struct nk_json *body = nk_req_json(req);
    struct nk_process *p = nk_read_process(req, err);
    uint64_t size[2] = {0};

    if (!p || nk_json_only(body, fields, NK_COUNT(fields), err) < 0)
        return -1;
    for (size_t i = 0; i < NK_COUNT(fields); i++) {
        if (nk_json_read_u64(body, fields[i], 1, UINT16_MAX, &size[i], err) < 0)
            return -1;
        if (size[i] == 0)
            return nk_fail(err, NK_BAD_REQUEST, "%s is missing", fields[i]);
    }
    if (nk_process_resize(p, (unsigned)size[0], (unsigned)size[1], err) < 0)
        return -1;
    nk_wire_reply_process(req, 200, p);
    return 0;
}

int nk_api_process_delete(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    struct nk_process *p = nk_read_process(req, err);

    if (!p)
        return -1;
    nk_registry_forget(api->processes, p);
    nk_reply_empty(req, 204);
    return 0;
}
