#include "cli/play.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/ask.h"
#include "cli/event_text.h"
#include "cli/out.h"

/* A living stream says something every 15 s, if only a comment. */
#define SILENCE_MS 90000

struct playing {
    const struct nk_play *play;
    struct nk_sse_read events;
    struct nk_buf text; /* of the output event that is being written */
};

static int write_text(struct playing *g, int fd, const struct nk_sse_event *event)
{
    int rc = nk_event_text_decode(event->data, event->len, &g->text);

    if (rc == -ENOMEM)
        return nk_out_fail_msg("out of memory");
    if (rc < 0)
        return nk_out_fail_msg("the stream is broken: an output event cannot be read");
    rc = nk_out_write(g->play->wait, fd, nk_buf_front(&g->text), nk_buf_left(&g->text));
    nk_buf_consume(&g->text, nk_buf_left(&g->text));
    return rc;
}

static int take_event(struct playing *g, const struct nk_sse_event *event)
{
    int rc = 0;

    if (strcmp(event->event, "stdout") == 0)
        rc = write_text(g, STDOUT_FILENO, event);
    else if (strcmp(event->event, "stderr") == 0)
        rc = write_text(g, STDERR_FILENO, event);
    return rc != 0 ? rc : g->play->on_event(g->play->ctx, event);
}

static int take_events(struct playing *g)
{
    struct nk_sse_event event;
    struct nk_err err;
    int status = NK_PLAY_ON;
    int rc;

    while (status == NK_PLAY_ON) {
        rc = nk_sse_read_next(&g->events, &event, &err);
        if (rc < 0)
            return nk_out_fail(&err);
        if (rc == 0)
            return NK_PLAY_ON;
        status = take_event(g, &event);
    }
    return status;
}

/* Until bytes, or the end, can be had without waiting. */
static int await(const struct nk_play *p, const struct nk_client *c)
{
    int rc = nk_interrupt_wait(p->wait, nk_client_fd(c), POLLIN, SILENCE_MS);

    if (rc == -ETIMEDOUT)
        return nk_out_fail_msg("the server has been silent for %d s", SILENCE_MS / 1000);
    if (rc < 0)
        return nk_out_fail_msg("cannot wait: %s", strerror(-rc));
    return rc;
}

static int play_on(struct playing *g, struct nk_client *c)
{
    bool end = false;
    struct nk_err err;

    while (!end) {
        int rc = nk_client_pending(c) ? 0 : await(g->play, c);
        int failed;

        if (rc > 0)
            return rc;
        failed = nk_client_read_body(c, &g->events.in, &end, &err);
        /* What came before it broke is played all the same. */
        rc = take_events(g);
        if (rc != NK_PLAY_ON)
            return rc;
        if (failed < 0)
            return nk_out_fail_msg("the stream is broken: %s", err.msg);
    }
    return nk_out_fail_msg("the stream is broken: it ended without its closing event");
}

int nk_play_run(const struct nk_play *p, struct nk_client *c)
{
    struct playing g = {.play = p};
    int status;

    nk_sse_read_init(&g.events, NK_PLAY_EVENT_MAX);
    status = play_on(&g, c);
    nk_sse_read_fini(&g.events);
    nk_buf_fini(&g.text);
    return status;
}

int nk_play_head(const struct nk_play *p, struct nk_client *c, int *out_status)
{
    struct nk_err err;
    int rc = await(p, c);

    if (rc > 0)
        return rc;
    if (nk_client_read_head(c, out_status, &err) < 0)
        return nk_out_fail(&err);
    return 0;
}

int nk_play_error(const struct nk_sse_event *event)
{
    struct nk_json *root = NULL;

    if (nk_json_parse(event->data, event->len, &root, NULL) == 0 &&
        nk_json_type(root) == NK_JSON_OBJECT)
        (void)nk_out_fail_msg("%s: %s", nk_ask_text(root, "code", "error"),
                              nk_ask_text(root, "message", "of the server"));
    else
        (void)nk_out_fail_msg("the stream ended with an error that cannot be read");
    nk_json_free(root);
    return NK_OUT_FAILED;
}
