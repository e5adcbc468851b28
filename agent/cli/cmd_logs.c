#include "cli/cmd_logs.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/play.h"

#define OFFSET_MAX ((uint64_t)1 << 53)

const char nk_cmd_logs_help[] =
    "usage: nookd logs [-f] [--since OFFSET] ID\n"
    "\n"
    "Prints what is held of the output of a process (by id or name), each stream to its own.\n"
    "\n"
    "  -f, --follow    go on with what comes, until the process ends or nobody reads on\n"
    "  --since OFFSET  only what was written after this position\n"
    "  --socket PATH   the daemon's socket\n";

struct logs {
    const struct nk_cli_env *env;
    const char *socket, *since, *id;
    bool follow;
    uint64_t end; /* where to stop, without -f */
};

static void add_path(struct nk_buf *out, const struct logs *l, const char *tail)
{
    nk_buf_add_str(out, "/v1/processes/");
    nk_ask_escape(out, l->id);
    nk_buf_add_str(out, tail);
    nk_buf_add_char(out, '\0');
}

static const char *text(const struct nk_buf *path)
{
    return path->failed ? "" : (const char *)nk_buf_front(path);
}

static int ask_record(const struct logs *l, struct nk_json **out, struct nk_err *err)
{
    struct nk_client *c = NULL;
    struct nk_buf path = {0};
    int rc;

    if (nk_ask_open(l->env, l->socket, NK_ASK_TIMEOUT_MS, &c, err) < 0)
        return -1;
    add_path(&path, l, "");
    rc = nk_ask_json(c, "GET", text(&path), NULL, out, err);
    nk_buf_fini(&path);
    nk_client_free(c);
    return rc;
}

/* 1: there is something to print up to l->end; 0: nothing. */
static int find_end(struct logs *l, struct nk_err *err)
{
    struct nk_json *record = NULL;
    uint64_t start = 0, end = 0;
    int rc = ask_record(l, &record, err);

    if (rc == 0 && (!record || nk_json_type(record) != NK_JSON_OBJECT))
        rc = nk_fail(err, NK_BAD_GATEWAY, "the server's answer is not an object");
    if (rc == 0)
        rc = nk_json_read_u64(record, "log_start", 0, OFFSET_MAX, &start, err);
    if (rc == 0)
        rc = nk_json_read_u64(record, "log_end", 0, OFFSET_MAX, &end, err);
    nk_json_free(record);
    if (rc < 0)
        return -1;
    l->end = end;
    if (l->since)
        return strtoull(l->since, NULL, 10) != end;
    return start != end;
}

static int tell_gap(const struct nk_sse_event *event)
{
    struct nk_json *gap = NULL;
    uint64_t from = 0, to = 0;

    if (nk_json_parse(event->data, event->len, &gap, NULL) == 0 &&
        nk_json_type(gap) == NK_JSON_OBJECT &&
        nk_json_read_u64(gap, "from", 0, OFFSET_MAX, &from, NULL) == 0 &&
        nk_json_read_u64(gap, "to", from, OFFSET_MAX, &to, NULL) == 0)
        (void)nk_out_fail_msg("%llu bytes are no longer held", (unsigned long long)(to - from));
    nk_json_free(gap);
    return NK_PLAY_ON;
}

static int on_event(void *ctx, const struct nk_sse_event *event)
{
    const struct logs *l = ctx;

    if (strcmp(event->event, "exit") == 0)
        return 0;
    if (strcmp(event->event, "error") == 0)
        return nk_play_error(event);
    if (strcmp(event->event, "gap") == 0)
        (void)tell_gap(event);
    if (!l->follow && event->id != NK_SSE_READ_NO_ID && event->id >= l->end)
        return 0;
    return NK_PLAY_ON;
}

static int refused(struct nk_client *c, int status)
{
    struct nk_ask_problem problem;
    struct nk_err err;

    if (nk_ask_problem(c, status, &problem, &err) == 0)
        (void)nk_ask_refused(&problem, &err);
    return nk_out_fail(&err);
}

static int play(struct logs *l, const struct nk_interrupt *wait, struct nk_client *c)
{
    struct nk_play play = {.on_event = on_event, .ctx = l, .wait = wait};
    int http = 0;
    int status = nk_play_head(&play, c, &http);

    if (status != 0)
        return status;
    return http == 200 ? nk_play_run(&play, c) : refused(c, http);
}

static int send_follow(const struct logs *l, struct nk_client *c, struct nk_err *err)
{
    static const char *const headers[] = {"Accept: text/event-stream", NULL};
    struct nk_client_request req = {.method = "GET", .headers = headers};
    struct nk_buf path = {0}, tail = {0};
    int rc;

    nk_buf_add_str(&tail, "/follow");
    if (l->since)
        nk_buf_add_fmt(&tail, "?since=%s", l->since);
    nk_buf_add_char(&tail, '\0');
    add_path(&path, l, text(&tail));
    req.path = text(&path);
    rc = nk_client_send(c, &req, err);
    nk_buf_fini(&path);
    nk_buf_fini(&tail);
    return rc;
}

static int follow(struct logs *l)
{
    struct nk_interrupt wait = {.fd = -1, .with_reader = l->follow};
    struct nk_client *c = NULL;
    struct nk_err err;
    int status;

    if (nk_ask_open(l->env, l->socket, NK_ASK_TIMEOUT_MS, &c, &err) < 0)
        return nk_out_fail(&err);
    if (nk_interrupt_open(&wait) < 0)
        status = nk_out_fail_msg("cannot watch for signals");
    else if (send_follow(l, c, &err) < 0)
        status = nk_out_fail(&err);
    else
        status = play(l, &wait, c);
    nk_client_free(c);
    nk_interrupt_close(&wait);
    return status;
}

static int run(struct logs *l)
{
    struct nk_err err;
    int rc;

    if (l->since && (*l->since == '\0' || strlen(l->since) > 16 ||
                     l->since[strspn(l->since, "0123456789")] != '\0'))
        return nk_out_fail_msg("--since needs a position in bytes, not %s", l->since);
    rc = l->follow ? 1 : find_end(l, &err);
    if (rc < 0)
        return nk_out_fail(&err);
    return rc == 0 ? 0 : follow(l);
}

int nk_cmd_logs(char **argv, const struct nk_cli_env *env)
{
    struct logs l = {.env = env};
    const struct nk_args_opt table[] = {
        {"--follow", 'f', NK_ARGS_FLAG, &l.follow},
        {"--since", 0, NK_ARGS_TEXT, &l.since},
        {"--socket", 0, NK_ARGS_TEXT, &l.socket},
    };
    struct nk_args args = {.opts = table, .count = NK_COUNT(table)};
    int status = nk_args_begin(&args, argv);

    if (status != 0)
        return status;
    if (args.operand_count != 1)
        return nk_out_fail_msg("logs needs one id or name (--help shows how)");
    l.id = args.operand[0];
    return run(&l);
}
