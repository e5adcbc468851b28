#include <stdio.h>

#include "api/api.h"
#include "api/handlers.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/json_out.h"
#include "http/router.h"

const struct nk_route nk_routes[] = {
    {"GET", "/healthz", "health", nk_api_health, .auth = NK_AUTH_NONE, .while_paused = 1,
     .while_ending = 1},
    {"GET", "/readyz", "ready", nk_api_ready, .auth = NK_AUTH_NONE, .while_paused = 1},
    {"GET", "/metrics", "metrics", nk_api_metrics, .while_paused = 1, .while_ending = 1},
    {"GET", "/v1/capabilities", "capabilities", nk_api_capabilities, .while_paused = 1,
     .while_ending = 1},
    {"POST", "/v1/exec", "exec", nk_api_exec, .ident = NK_IDENT_OPTIONAL, .body = NK_BODY_EXEC,
     .touches = 1, .keyed = 1},
    {"POST", "/v1/exec/stream", "execStream", nk_api_exec_stream, .ident = NK_IDENT_OPTIONAL,
     .body = NK_BODY_EXEC, .touches = 1, .keyed = 1},
    {"POST", "/v1/code", "code", nk_api_code, .ident = NK_IDENT_OPTIONAL, .body = NK_BODY_JSON,
     .touches = 1, .keyed = 1},
    {"POST", "/v1/code/stream", "codeStream", nk_api_code_stream, .ident = NK_IDENT_OPTIONAL,
     .body = NK_BODY_JSON, .touches = 1, .keyed = 1},
    {"POST", "/v1/contexts", "contextCreate", nk_api_context_create, .ident = NK_IDENT_OPTIONAL,
     .body = NK_BODY_JSON_OPT, .touches = 1, .keyed = 1},
    {"GET", "/v1/contexts", "contextList", nk_api_context_list, .ident = NK_IDENT_OPTIONAL,
     .while_paused = 1, .while_ending = 1},
    {"GET", "/v1/contexts/{id}", "contextShow", nk_api_context_show, .ident = NK_IDENT_OPTIONAL,
     .while_paused = 1, .while_ending = 1, .touches = 1},
    {"DELETE", "/v1/contexts/{id}", "contextDelete", nk_api_context_delete,
     .ident = NK_IDENT_OPTIONAL, .while_paused = 1, .while_ending = 1, .touches = 1},
    {"POST", "/v1/contexts/{id}/code", "contextCode", nk_api_context_code,
     .ident = NK_IDENT_OPTIONAL, .body = NK_BODY_JSON, .touches = 1, .keyed = 1},
    {"POST", "/v1/contexts/{id}/code/stream", "contextCodeStream", nk_api_context_stream,
     .ident = NK_IDENT_OPTIONAL, .body = NK_BODY_JSON, .touches = 1, .keyed = 1},
    {"POST", "/v1/contexts/{id}/interrupt", "contextInterrupt", nk_api_context_interrupt,
     .ident = NK_IDENT_OPTIONAL, .body = NK_BODY_JSON_OPT, .while_paused = 1, .touches = 1},
    {"POST", "/v1/contexts/{id}/restart", "contextRestart", nk_api_context_restart,
     .ident = NK_IDENT_OPTIONAL, .body = NK_BODY_JSON_OPT, .touches = 1},
    {"GET", "/v1/exec/ws", "execWs", nk_api_exec_ws, .auth = NK_AUTH_WS_TICKET,
     .ident = NK_IDENT_OPTIONAL, .touches = 1, .websocket = 1},
    {"POST", "/v1/exec/ws-token", "execWsToken", nk_api_exec_ticket, .ident = NK_IDENT_OPTIONAL,
     .body = NK_BODY_JSON_OPT, .while_paused = 1},
    {"POST", "/v1/processes", "processStart", nk_api_process_start, .ident = NK_IDENT_OPTIONAL,
     .body = NK_BODY_JSON, .touches = 1, .keyed = 1},
    {"GET", "/v1/processes", "processList", nk_api_process_list, .ident = NK_IDENT_OPTIONAL,
     .query = {"running", "limit"}, .while_paused = 1, .while_ending = 1},
    {"GET", "/v1/processes/{id}", "processShow", nk_api_process_show, .ident = NK_IDENT_OPTIONAL,
     .query = {"wait"}, .while_paused = 1, .while_ending = 1, .touches = 1},
    {"DELETE", "/v1/processes/{id}", "processDelete", nk_api_process_delete,
     .ident = NK_IDENT_OPTIONAL, .while_paused = 1, .while_ending = 1, .touches = 1},
    {"GET", "/v1/processes/{id}/logs", "processLogs", nk_api_process_logs,
     .ident = NK_IDENT_OPTIONAL, .query = {"since", "tail", "stream", "raw"}, .while_paused = 1,
     .while_ending = 1, .touches = 1},
    {"GET", "/v1/processes/{id}/follow", "processFollow", nk_api_process_follow,
     .ident = NK_IDENT_OPTIONAL, .query = {"since"}, .while_paused = 1, .while_ending = 1,
     .touches = 1},
    {"POST", "/v1/processes/{id}/kill", "processKill", nk_api_process_kill,
     .ident = NK_IDENT_OPTIONAL, .body = NK_BODY_JSON_OPT, .while_paused = 1, .while_ending = 1,
     .touches = 1},
    {"POST", "/v1/processes/{id}/stdin", "processStdin", nk_api_process_stdin,
     .ident = NK_IDENT_OPTIONAL, .body = NK_BODY_JSON, .while_paused = 1, .while_ending = 1,
     .touches = 1},
    {"GET", "/v1/files", "fileRead", nk_api_file_read, .ident = NK_IDENT_OPTIONAL,
     .query = {"path"}, .while_paused = 1, .touches = 1},
    {"PUT", "/v1/files", "fileWrite", nk_api_file_write, .ident = NK_IDENT_OPTIONAL,
     .body = NK_BODY_STREAM, .query = {"path", "mode"}, .while_paused = 1, .touches = 1},
    {"POST", "/v1/files", "fileUpload", nk_api_file_upload, .ident = NK_IDENT_OPTIONAL,
     .body = NK_BODY_STREAM, .query = {"dir"}, .while_paused = 1, .touches = 1},
    {"DELETE", "/v1/files", "fileDelete", nk_api_file_delete, .ident = NK_IDENT_OPTIONAL,
     .query = {"path", "recursive"}, .while_paused = 1, .touches = 1},
    {"GET", "/v1/files/list", "fileList", nk_api_file_list, .ident = NK_IDENT_OPTIONAL,
     .query = {"path", "recursive", "depth", "limit", "cursor"}, .while_paused = 1},
    {"GET", "/v1/files/stat", "fileStat", nk_api_file_stat, .ident = NK_IDENT_OPTIONAL,
     .query = {"path"}, .while_paused = 1, .touches = 1},
    {"GET", "/v1/files/watch", "fileWatch", nk_api_file_watch, .ident = NK_IDENT_OPTIONAL,
     .query = {"path", "recursive"}, .while_paused = 1, .touches = 1},
    {"POST", "/v1/files/mkdir", "fileMkdir", nk_api_file_mkdir, .ident = NK_IDENT_OPTIONAL,
     .body = NK_BODY_JSON, .while_paused = 1, .touches = 1},
    {"POST", "/v1/files/move", "fileMove", nk_api_file_move, .ident = NK_IDENT_OPTIONAL,
     .body = NK_BODY_JSON, .while_paused = 1, .touches = 1},
    {"POST", "/v1/files/copy", "fileCopy", nk_api_file_copy, .ident = NK_IDENT_OPTIONAL,
     .body = NK_BODY_JSON, .while_paused = 1, .touches = 1},
    {"POST", "/v1/files/chmod", "fileChmod", nk_api_file_chmod, .ident = NK_IDENT_OPTIONAL,
     .body = NK_BODY_JSON, .while_paused = 1, .touches = 1},
    {"DELETE", "/v1/workspace", "workspaceDelete", nk_api_workspace_delete,
     .ident = NK_IDENT_OPTIONAL, .while_paused = 1, .touches = 1},
    {"POST", "/v1/processes/{id}/resize", "processResize", nk_api_process_resize,
     .ident = NK_IDENT_OPTIONAL, .body = NK_BODY_JSON, .while_paused = 1, .while_ending = 1,
     .touches = 1},
    {"GET", "/v1/processes/{id}/ws", "processAttach", nk_api_process_attach,
     .auth = NK_AUTH_WS_TICKET, .ident = NK_IDENT_OPTIONAL, .query = {"since", "binary"},
     .while_paused = 1, .while_ending = 1, .touches = 1, .websocket = 1},
    {"GET", "/v1/archive", "archiveRead", nk_api_archive_read, .ident = NK_IDENT_OPTIONAL,
     .query = {"path", "base", "format", "links"}, .query_many = "path", .while_paused = 1,
     .touches = 1},
    {"PUT", "/v1/archive", "archiveWrite", nk_api_archive_write, .ident = NK_IDENT_OPTIONAL,
     .body = NK_BODY_STREAM, .query = {"path", "strict"}, .while_paused = 1, .touches = 1},
    {"ANY", "/v1/proxy/{port}/{rest...}", "proxy", nk_api_port_proxy, .ident = NK_IDENT_OPTIONAL,
     .body = NK_BODY_STREAM, .while_paused = 1, .touches = 1, .opaque = 1},
    {"GET", "/v1/sandbox", "sandboxShow", nk_api_sandbox_show, .while_paused = 1,
     .while_ending = 1},
    {"PATCH", "/v1/sandbox", "sandboxPatch", nk_api_sandbox_patch, .body = NK_BODY_JSON,
     .while_paused = 1},
    {"DELETE", "/v1/sandbox", "sandboxDelete", nk_api_sandbox_delete, .while_paused = 1,
     .while_ending = 1},
    {"POST", "/v1/sandbox/keepalive", "sandboxKeepalive", nk_api_sandbox_keepalive,
     .body = NK_BODY_JSON_OPT, .while_paused = 1, .touches = 1},
    {"POST", "/v1/sandbox/pause", "sandboxPause", nk_api_sandbox_pause, .body = NK_BODY_JSON_OPT,
     .while_paused = 1},
    {"POST", "/v1/sandbox/resume", "sandboxResume", nk_api_sandbox_resume, .body = NK_BODY_JSON_OPT,
     .while_paused = 1},
    {"PUT", "/v1/sandbox/token", "sandboxToken", nk_api_sandbox_token, .body = NK_BODY_JSON,
     .while_paused = 1},
    {"GET", "/v1/sandbox/usage", "sandboxUsage", nk_api_sandbox_usage, .while_paused = 1,
     .while_ending = 1},
};

const size_t nk_route_count = NK_COUNT(nk_routes);

static const char *auth_name(enum nk_auth auth)
{
    static const char *const names[] = {
        [NK_AUTH_TOKEN] = "token", [NK_AUTH_NONE] = "none", [NK_AUTH_WS_TICKET] = "ticket"};

    return names[auth];
}

static const char *body_name(enum nk_body body)
{
    static const char *const names[] = {
        [NK_BODY_NONE] = "none", [NK_BODY_JSON] = "json",     [NK_BODY_JSON_OPT] = "json_opt",
        [NK_BODY_EXEC] = "exec", [NK_BODY_STREAM] = "stream",
    };

    return names[body];
}

static void write_route(struct nk_json_out *o, const struct nk_route *route)
{
    nk_json_out_open(o, NULL, '{');
    nk_json_out_str(o, "method", route->method);
    nk_json_out_str(o, "path", route->path);
    nk_json_out_str(o, "operation", route->operation);
    nk_json_out_str(o, "auth", auth_name(route->auth));
    nk_json_out_bool(o, "identity", route->ident != NK_IDENT_NONE);
    nk_json_out_str(o, "body", body_name(route->body));
    nk_json_out_open(o, "query", '[');
    for (int i = 0; i < NK_ROUTE_QUERIES && route->query[i]; i++)
        nk_json_out_str(o, NULL, route->query[i]);
    nk_json_out_close(o, ']');
    nk_json_out_bool(o, "while_paused", route->while_paused);
    nk_json_out_bool(o, "while_ending", route->while_ending);
    nk_json_out_bool(o, "touches", route->touches);
    nk_json_out_bool(o, "websocket", route->websocket);
    nk_json_out_bool(o, "keyed", route->keyed);
    nk_json_out_close(o, '}');
}

int nk_api_print_routes(void)
{
    struct nk_buf out = {0};
    struct nk_json_out o = {.buf = &out};
    int rc = -1;

    nk_json_out_open(&o, NULL, '[');
    for (size_t i = 0; i < nk_route_count; i++)
        write_route(&o, &nk_routes[i]);
    nk_json_out_close(&o, ']');
    nk_buf_add_char(&out, '\n');
    if (!out.failed &&
        fwrite(nk_buf_front(&out), 1, nk_buf_left(&out), stdout) == nk_buf_left(&out))
        rc = fflush(stdout) == 0 ? 0 : -1;
    nk_buf_fini(&out);
    return rc;
}
