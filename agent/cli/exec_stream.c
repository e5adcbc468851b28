#include "cli/exec_stream.h"

#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/play.h"
#include "cli/run_result.h"

static int print_id(const struct nk_exec_stream *s, const struct nk_json *started)
{
    struct nk_buf line = {0};
    int rc;

    (void)s;
    nk_out_plain(&line, nk_ask_text(started, "id", ""));
    nk_buf_add_char(&line, '\n');
    rc = nk_out_buf(&line);
    nk_buf_fini(&line);
    return rc;
}

static int exit_code(const struct nk_exec_stream *s, const struct nk_json *result)
{
    uint64_t code = NK_OUT_FAILED;
    struct nk_err err;
    int status;

    if (!nk_json_get(result, "exit_code"))
        return nk_out_fail_msg("the stream is broken: the exit event holds no exit_code");
    if (nk_json_read_u64(result, "exit_code", 0, 255, &code, &err) < 0)
        return nk_out_fail(&err);
    status = s->closing ? s->closing(s->ctx, result) : 0;
    return status ? status : (int)code;
}

static int with_object(const struct nk_exec_stream *s, const struct nk_sse_event *event,
                       int (*use)(const struct nk_exec_stream *, const struct nk_json *))
{
    struct nk_json *root = NULL;
    struct nk_err err;
    int status;

    if (nk_json_parse(event->data, event->len, &root, &err) < 0)
        return nk_out_fail_msg("the stream is broken: %s", err.msg);
    if (nk_json_type(root) == NK_JSON_OBJECT)
        status = use(s, root);
    else
        status = nk_out_fail_msg("the stream is broken: an event is not an object");
    nk_json_free(root);
    return status;
}

static int show(const struct nk_exec_stream *s, const struct nk_json *bundle)
{
    int rc = s->closing ? nk_run_result_show(bundle) : 0;

    return rc == 0 ? NK_PLAY_ON : rc;
}

static int on_event(void *ctx, const struct nk_sse_event *event)
{
    const struct nk_exec_stream *s = ctx;

    if (strcmp(event->event, "exit") == 0 || strcmp(event->event, "result") == 0)
        return with_object(s, event, exit_code);
    if (strcmp(event->event, "error") == 0)
        return nk_play_error(event);
    if (strcmp(event->event, "display") == 0)
        return with_object(s, event, show);
    if (s->detach && strcmp(event->event, "started") == 0)
        return with_object(s, event, print_id);
    return NK_PLAY_ON;
}

static int refused(struct nk_client *c, int status)
{
    struct nk_ask_problem problem;
    struct nk_err err;

    if (nk_ask_problem(c, status, &problem, &err) < 0)
        return nk_out_fail(&err);
    return nk_ask_tell(&problem);
}

static int run_on(const struct nk_play *play, struct nk_client *c)
{
    int http = 0;
    int status = nk_play_head(play, c, &http);

    if (status != 0)
        return status;
    if (http != 200)
        return refused(c, http);
    return nk_play_run(play, c);
}

static int send_request(const struct nk_exec_stream *s, struct nk_client *c, struct nk_err *err)
{
    static const char *const headers[] = {"Content-Type: application/json",
                                          "Accept: text/event-stream", NULL};

    const struct nk_client_request req = {
        .method = "POST",
        .path = s->path ? s->path : "/v1/exec/stream",
        .headers = headers,
        .body = nk_buf_front(s->request),
        .body_len = (int64_t)nk_buf_left(s->request),
    };

    return nk_client_send(c, &req, err);
}

int nk_exec_stream_run(const struct nk_exec_stream *s)
{
    struct nk_interrupt interrupt = {.fd = -1};
    struct nk_exec_stream copy = *s;
    struct nk_play play = {.on_event = on_event, .ctx = &copy, .wait = &interrupt};
    struct nk_client *c = NULL;
    struct nk_err err;
    int status;

    if (nk_ask_open(s->env, s->socket, NK_ASK_TIMEOUT_MS, &c, &err) < 0)
        return nk_out_fail(&err);
    /* From here on Ctrl-C closes the connection, and the daemon kills the command for that. */
    if (nk_interrupt_open(&interrupt) < 0)
        status = nk_out_fail_msg("cannot watch for signals");
    else if (send_request(s, c, &err) < 0)
        status = nk_out_fail(&err);
    else
        status = run_on(&play, c);
    nk_client_free(c);
    nk_interrupt_close(&interrupt);
    return status;
}
