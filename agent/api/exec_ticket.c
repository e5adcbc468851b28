/* POST /v1/exec/ws-token: a token that opens one WebSocket, for clients that cannot send headers. */
#include "api/api.h"
#include "api/handlers.h"
#include "api/tickets.h"
#include "api/wire.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/secret.h"
#include "http/reply.h"
#include "http/request.h"

int nk_api_exec_ticket(struct nk_req *req, struct nk_err *err)
{
    struct nk_api *api = nk_req_app(req);
    struct nk_buf body = {0};
    struct nk_json_out o = {.buf = &body};
    char token[NK_ID_MAX];

    if (nk_json_only(nk_req_json(req), NULL, 0, err) < 0 ||
        nk_tickets_issue(api->tickets, nk_req_identity(req), token, err) < 0)
        return -1;
    nk_json_out_open(&o, NULL, '{');
    nk_json_out_str(&o, "token", token);
    nk_json_out_time(&o, "expires_at", nk_clock_wall_ms() + NK_TICKETS_MS);
    nk_json_out_close(&o, '}');
    nk_reply_header(req, "Cache-Control", "no-store");
    nk_wire_reply(req, 200, &body);
    nk_secret_wipe(token, sizeof token);
    return 0;
}
