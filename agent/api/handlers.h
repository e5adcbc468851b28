/*
 * Every handler of the route table, by operation. They read the request, call one room, write the
 * reply; what a row demands was enforced before. Loop thread only.
 */
#ifndef NK_API_HANDLERS_H
#define NK_API_HANDLERS_H

#include "base/err.h"

struct nk_req;

int nk_api_health(struct nk_req *req, struct nk_err *err);
int nk_api_ready(struct nk_req *req, struct nk_err *err);
int nk_api_metrics(struct nk_req *req, struct nk_err *err);
int nk_api_capabilities(struct nk_req *req, struct nk_err *err);
int nk_api_exec(struct nk_req *req, struct nk_err *err);
int nk_api_exec_stream(struct nk_req *req, struct nk_err *err);
int nk_api_code(struct nk_req *req, struct nk_err *err);
int nk_api_code_stream(struct nk_req *req, struct nk_err *err);
int nk_api_context_create(struct nk_req *req, struct nk_err *err);
int nk_api_context_list(struct nk_req *req, struct nk_err *err);
int nk_api_context_show(struct nk_req *req, struct nk_err *err);
int nk_api_context_delete(struct nk_req *req, struct nk_err *err);
int nk_api_context_code(struct nk_req *req, struct nk_err *err);
int nk_api_context_stream(struct nk_req *req, struct nk_err *err);
int nk_api_context_interrupt(struct nk_req *req, struct nk_err *err);
int nk_api_context_restart(struct nk_req *req, struct nk_err *err);
int nk_api_exec_ws(struct nk_req *req, struct nk_err *err);
int nk_api_exec_ticket(struct nk_req *req, struct nk_err *err);
int nk_api_process_start(struct nk_req *req, struct nk_err *err);
int nk_api_process_list(struct nk_req *req, struct nk_err *err);
int nk_api_process_show(struct nk_req *req, struct nk_err *err);
int nk_api_process_delete(struct nk_req *req, struct nk_err *err);
int nk_api_process_logs(struct nk_req *req, struct nk_err *err);
int nk_api_process_follow(struct nk_req *req, struct nk_err *err);
int nk_api_process_kill(struct nk_req *req, struct nk_err *err);
int nk_api_process_stdin(struct nk_req *req, struct nk_err *err);
int nk_api_process_resize(struct nk_req *req, struct nk_err *err);
int nk_api_process_attach(struct nk_req *req, struct nk_err *err);
int nk_api_archive_read(struct nk_req *req, struct nk_err *err);
int nk_api_archive_write(struct nk_req *req, struct nk_err *err);
int nk_api_file_read(struct nk_req *req, struct nk_err *err);
int nk_api_file_upload(struct nk_req *req, struct nk_err *err);
int nk_api_file_write(struct nk_req *req, struct nk_err *err);
int nk_api_file_delete(struct nk_req *req, struct nk_err *err);
int nk_api_file_list(struct nk_req *req, struct nk_err *err);
int nk_api_file_stat(struct nk_req *req, struct nk_err *err);
int nk_api_file_watch(struct nk_req *req, struct nk_err *err);
int nk_api_file_mkdir(struct nk_req *req, struct nk_err *err);
int nk_api_file_move(struct nk_req *req, struct nk_err *err);
int nk_api_file_copy(struct nk_req *req, struct nk_err *err);
int nk_api_file_chmod(struct nk_req *req, struct nk_err *err);
int nk_api_workspace_delete(struct nk_req *req, struct nk_err *err);
int nk_api_port_proxy(struct nk_req *req, struct nk_err *err);
int nk_api_sandbox_show(struct nk_req *req, struct nk_err *err);
int nk_api_sandbox_patch(struct nk_req *req, struct nk_err *err);
int nk_api_sandbox_delete(struct nk_req *req, struct nk_err *err);
int nk_api_sandbox_keepalive(struct nk_req *req, struct nk_err *err);
int nk_api_sandbox_pause(struct nk_req *req, struct nk_err *err);
int nk_api_sandbox_resume(struct nk_req *req, struct nk_err *err);
int nk_api_sandbox_token(struct nk_req *req, struct nk_err *err);
int nk_api_sandbox_usage(struct nk_req *req, struct nk_err *err);

#endif
