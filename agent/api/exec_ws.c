/* GET /v1/exec/ws: a command behind a WebSocket, which its first message starts.
 *
 * The reader sets the pace: nothing is dropped. Closing the socket kills the command, unless it was
 * started to go on alone. */
#include <stdlib.h>

#include "api/api.h"
#include "api/handlers.h"
#include "api/message.h"
#include "api/problem.h"
#include "api/session.h"
#include "api/starter.h"
#include "api/wire_ws.h"
#include "http/request.h"

struct exec_session {
    struct nk_session session;
    struct nk_starter starter;
    struct nk_json *start; /* owned: the first message, until it has started */
    unsigned users;        /* the session, and a start that is not through */
};

static struct exec_session *of_session(struct nk_session *s)
{
    return NK_CONTAINER_OF(s, struct exec_session, session);
}

static void release(struct exec_session *e)
{
    if (--e->users > 0)
        return;
    nk_json_free(e->start);
    free(e);
}

static void on_released(struct nk_session *s)
{
    release(of_session(s));
}

static void on_over(struct nk_session *s)
{
    struct exec_session *e = of_session(s);

    if (!e->starter.req)
        return;
    nk_starter_gone(&e->starter);
    if (!nk_starter_drop(&e->starter))
        e->users++;
}

/* What is wrong with the words of the first message is the client's fault, what became of it is not. */
static void fail_start(struct nk_session *s, const struct nk_err *err)
{
    int status = nk_problem_status(err->code);
    bool bad = (status == 400 && err->code != NK_EXEC_FAILED) || status == 403;

    nk_session_fail(s, err, bad ? NK_WS_POLICY : NK_WS_INTERNAL);
}

static void on_started(struct nk_starter *l, const struct nk_err *err)
{
    struct exec_session *e = NK_CONTAINER_OF(l, struct exec_session, starter);

    if (!l->req)
        release(e);
    else if (err)
        fail_start(&e->session, err);
}

static void on_start(struct nk_session *s, const void *text, size_t len)
{
    struct exec_session *e = of_session(s);
    struct nk_err err;

    if (nk_message_read_start(text, len, &e->start, &err) < 0 ||
        nk_starter_run_late(&e->starter, s->ws.req, e->start, &err) < 0)
        fail_start(s, &err);
}

static void write_opening(struct nk_session *s, struct nk_buf *out)
{
    struct exec_session *e = of_session(s);

    nk_json_free(e->start);
    e->start = NULL;
    s->binary = e->starter.ask.binary;
    s->shown.on = true;
    nk_wire_ws_started(out, s->watcher.process, s->watcher.pos);
}

int nk_api_exec_ws(struct nk_req *req, struct nk_err *err)
{
    static const struct nk_session_events events = {on_start, write_opening, on_over, on_released};
    struct nk_api *api = nk_req_app(req);
    struct exec_session *e = calloc(1, sizeof *e);

    if (!e)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    e->users = 1;
    e->session.events = &events;
    e->session.holds = true;
    e->starter = (struct nk_starter){
        .kind = NK_EXEC_SESSION, .watcher = &e->session.watcher, .done = on_started};
    nk_session_open(&e->session, req, api->loop);
    return 0;
}
