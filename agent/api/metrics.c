/* GET /metrics: the text format of Prometheus, version 0.0.4. */
#include <inttypes.h>

#include "api/api.h"
#include "api/handlers.h"
#include "base/clock.h"
#include "base/job.h"
#include "base/log.h"
#include "http/reply.h"
#include "http/request.h"
#include "process/reaper.h"
#include "process/registry.h"

static void metric(struct nk_buf *out, const char *name, const char *type, const char *help,
                   uint64_t value)
{
    nk_buf_add_fmt(out, "# HELP nook_%s %s\n# TYPE nook_%s %s\nnook_%s %" PRIu64 "\n", name, help,
                   name, type, name, value);
}

static void write_agent(struct nk_buf *out, const struct nk_api *api)
{
    nk_buf_add_str(out, "# HELP nook_build_info The version that runs.\n"
                        "# TYPE nook_build_info gauge\n"
                        "nook_build_info{version=\"" NOOK_VERSION "\"} 1\n");
    metric(out, "uptime_seconds", "gauge", "Time since the agent started.",
           (nk_clock_mono_ms() - api->started_ms) / 1000);
    metric(out, "jobs_active", "gauge", "Blocking jobs that wait or run.",
           nk_jobs_active(api->jobs));
    metric(out, "log_dropped_total", "counter", "Log records that could not be written.",
           nk_log_dropped());
}

static void write_http(struct nk_buf *out, const struct nk_api *api)
{
    const struct nk_http_stats *s = nk_server_stats(api->server);

    metric(out, "http_connections", "gauge", "Open connections.", s->open);
    metric(out, "http_connections_busy", "gauge", "Connections that work on a request.", s->busy);
    metric(out, "http_connections_total", "counter", "Connections accepted.", s->accepted);
    metric(out, "http_connections_refused_total", "counter", "Connections over the limit.",
           s->refused);
    metric(out, "http_requests_total", "counter", "Requests received.", s->requests);
    metric(out, "http_received_bytes_total", "counter", "Bytes read from clients.", s->bytes_in);
    metric(out, "http_sent_bytes_total", "counter", "Bytes written to clients.", s->bytes_out);
    nk_buf_add_str(out, "# HELP nook_http_answers_total Answers by class of status.\n"
                        "# TYPE nook_http_answers_total counter\n");
    for (int i = 1; i < 6; i++)
        nk_buf_add_fmt(out, "nook_http_answers_total{class=\"%dxx\"} %" PRIu64 "\n", i,
                       api->answers[i]);
}

static void write_commands(struct nk_buf *out, const struct nk_api *api)
{
    const struct nk_registry_stats *s = nk_registry_stats(api->processes);

    metric(out, "commands_running", "gauge", "Commands that hold a slot.", s->running);
    metric(out, "commands_kept", "gauge", "Ended commands still remembered.", s->ended);
    metric(out, "command_starts_total", "counter", "Starts of commands, failed ones too.",
           s->started);
    metric(out, "command_starts_failed_total", "counter", "Commands that could not be started.",
           s->failed);
    metric(out, "commands_exited_total", "counter", "Commands that have ended.", s->exited);
    metric(out, "commands_killed_total", "counter", "Commands ended by a call.", s->killed);
    metric(out, "commands_timed_out_total", "counter", "Commands ended by their timeout.",
           s->timed_out);
    metric(out, "command_output_bytes_total", "counter", "Bytes read from commands.",
           s->bytes_read);
    metric(out, "reaped_total", "counter", "Children waited for, orphans too.",
           nk_reaper_count(api->reaper));
}

int nk_api_metrics(struct nk_req *req, struct nk_err *err)
{
    const struct nk_api *api = nk_req_app(req);
    struct nk_buf body = {0};

    (void)err;
    write_agent(&body, api);
    write_http(&body, api);
    write_commands(&body, api);
    nk_reply_take(req, 200, "text/plain; version=0.0.4; charset=utf-8", &body);
    nk_buf_fini(&body);
    return 0;
}
