/* GET /v1/processes/{id}/ws: joins a process that is there, as one of several viewers.
 *
 * Replays what the log holds, then goes on with what comes. A viewer never slows the process, and
 * its leaving does nothing to it. */
#include <stdlib.h>

#include "api/api.h"
#include "api/handlers.h"
#include "api/read.h"
#include "api/session.h"
#include "api/wire_ws.h"
#include "http/request.h"

static void write_opening(struct nk_session *s, struct nk_buf *out)
{
    nk_wire_ws_attached(out, s->watcher.process);
}

static void on_over(struct nk_session *s)
{
    (void)s;
}

static void on_released(struct nk_session *s)
{
    free(s);
}

int nk_api_process_attach(struct nk_req *req, struct nk_err *err)
{
    static const struct nk_session_events events = {NULL, write_opening, on_over, on_released};
    struct nk_api *api = nk_req_app(req);
    struct nk_process *p = nk_read_process(req, err);
    struct nk_session *s;
    uint64_t pos;
    bool binary = false;

    if (!p)
        return -1;
    pos = p->log.start;
    if (nk_req_query_bool(req, "binary", &binary, err) < 0 ||
        nk_req_query_u64(req, "since", UINT64_MAX, &pos, err) < 0 ||
        nk_read_offset(p, pos, err) < 0)
        return -1;
    s = calloc(1, sizeof *s);
    if (!s)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    s->events = &events;
    s->binary = binary;
    nk_session_open(s, req, api->loop);
    nk_session_join(s, p, pos);
    return 0;
}
