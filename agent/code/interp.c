#include "code/interp.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "code/channel.h"
#include "process/hosted.h"
#include "process/registry.h"

struct nk_interp {
    struct nk_interp_config cfg;
    struct nk_channel channel;
    struct nk_watcher watcher; /* of its process */
    struct nk_drain drain;
    struct nk_event event; /* waits for the drain */
    bool has_event;
    uint64_t number;     /* of the run that it was given last */
    uv_timer_t deadline; /* until it is ready, or gone */
    uv_timer_t grace;    /* of an interrupt */
    enum nk_reason why;  /* when that is over */
    struct nk_err err;   /* why it was killed, where that is a fault */
    unsigned handles;
    bool ready, over;
};

static void on_handle_closed(struct nk_interp *i)
{
    if (--i->handles == 0)
        free(i);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_handle_closed(handle->data);
}

static void on_released(struct nk_channel *c)
{
    on_handle_closed(NK_CONTAINER_OF(c, struct nk_interp, channel));
}

static void close_all(struct nk_interp *i)
{
    i->over = true;
    if (i->has_event)
        nk_event_fini(&i->event);
    i->has_event = false;
    if (i->watcher.process)
        nk_hosted_undrain(i->watcher.process);
    nk_watcher_detach(&i->watcher);
    nk_channel_close(&i->channel);
    uv_close((uv_handle_t *)&i->deadline, on_timer_closed);
    uv_close((uv_handle_t *)&i->grace, on_timer_closed);
}

static void tell_ended(struct nk_interp *i, struct nk_process *p, const struct nk_err *err)
{
    const struct nk_interp_config cfg = i->cfg;

    if (p)
        nk_process_ref(p);
    close_all(i);
    cfg.events->ended(cfg.ctx, p, err);
    if (p)
        nk_process_unref(p);
}

static void fail(struct nk_interp *i, enum nk_code code, const char *why)
{
    if (i->err.code == NK_OK)
        (void)nk_fail(&i->err, code, "%s", why);
    nk_interp_kill(i, NK_REASON_KILLED);
}

static void on_event(struct nk_watcher *w, enum nk_proc_event ev, const struct nk_err *err)
{
    struct nk_interp *i = NK_CONTAINER_OF(w, struct nk_interp, watcher);
    struct nk_process *p = w->process;

    if (ev == NK_PROC_EV_FAILED)
        tell_ended(i, NULL, err);
    if (ev != NK_PROC_EV_EXITED)
        return;
    if (!i->ready && i->err.code == NK_OK)
        (void)nk_fail(&i->err, NK_EXEC_FAILED, "the interpreter ended with %d before it was ready",
                      nk_process_exit_code(p));
    tell_ended(i, p, i->err.code == NK_OK ? NULL : &i->err);
}

static void tell_event(struct nk_interp *i)
{
    struct nk_event e = i->event;

    i->has_event = false;
    if (e.kind == NK_EVENT_DISPLAY) {
        i->cfg.events->display(i->cfg.ctx, e.data);
        nk_channel_answer(&i->channel, "ok\n", 3);
    }
    if (e.kind == NK_EVENT_DONE) {
        if (e.run == i->number) /* another number ends nothing, so it spares nothing */
            (void)uv_timer_stop(&i->grace);
        i->cfg.events->done(i->cfg.ctx, &e);
    }
    nk_event_fini(&e);
}

static void on_drained(struct nk_drain *d)
{
    struct nk_interp *i = NK_CONTAINER_OF(d, struct nk_interp, drain);

    if (i->over)
        return;
    tell_event(i);
    nk_channel_pause(&i->channel, false);
}

static void on_ready(struct nk_interp *i)
{
    if (i->ready)
        return;
    i->ready = true;
    (void)uv_timer_stop(&i->deadline);
    i->cfg.events->ready(i->cfg.ctx);
}

static void on_line(struct nk_channel *c, const uint8_t *text, size_t len)
{
    struct nk_interp *i = NK_CONTAINER_OF(c, struct nk_interp, channel);
    struct nk_err err;

    if (nk_event_read(text, len, &i->event, &err) < 0) {
        nk_channel_pause(c, true);
        fail(i, NK_INTERNAL, "something else than an event came over its channel");
        return;
    }
    if (i->event.kind == NK_EVENT_READY) {
        nk_event_fini(&i->event);
        on_ready(i);
        return;
    }
    i->has_event = true;
    i->drain.fn = on_drained;
    nk_channel_pause(c, true);
    if (i->watcher.process->live)
        nk_hosted_drain(i->watcher.process, &i->drain);
}

static void on_deadline(uv_timer_t *timer)
{
    struct nk_interp *i = timer->data;

    if (nk_registry_is_paused(i->cfg.registry))
        (void)uv_timer_start(timer, on_deadline, NK_INTERP_EXIT_MS, 0);
    else if (i->ready)
        fail(i, NK_INTERNAL, "its channel was closed");
    else
        fail(i, NK_OVERLOADED, "the interpreter was not ready in time");
}

/* Its end of the channel is closed; most likely it is ending. */
static void on_channel_over(struct nk_channel *c, const char *why)
{
    struct nk_interp *i = NK_CONTAINER_OF(c, struct nk_interp, channel);

    if (why)
        fail(i, NK_INTERNAL, why);
    else
        (void)uv_timer_start(&i->deadline, on_deadline, NK_INTERP_EXIT_MS, 0);
}

static void on_grace_over(uv_timer_t *timer)
{
    struct nk_interp *i = timer->data;

    if (nk_registry_is_paused(i->cfg.registry))
        (void)uv_timer_start(timer, on_grace_over, NK_INTERP_GRACE_MS, 0);
    else
        nk_interp_kill(i, i->why);
}

static int open_handles(struct nk_interp *i, int *out_child)
{
    static const struct nk_channel_events events = {on_line, on_channel_over, on_released};
    int rc;

    i->channel.events = &events;
    rc = nk_channel_open(&i->channel, i->cfg.loop, out_child);
    if (rc < 0)
        return rc;
    (void)uv_timer_init(i->cfg.loop, &i->deadline);
    (void)uv_timer_init(i->cfg.loop, &i->grace);
    i->deadline.data = i->grace.data = i;
    i->handles = 3;
    return 0;
}

static void send_driver(struct nk_interp *i, const char *driver)
{
    struct nk_buf text = {0};

    nk_buf_add_u64(&text, strlen(driver));
    nk_buf_add_char(&text, '\n');
    nk_buf_add_str(&text, driver);
    if (text.failed)
        fail(i, NK_OVERLOADED, "no memory for an interpreter");
    else
        nk_channel_send(&i->channel, nk_buf_front(&text), nk_buf_left(&text));
    nk_buf_fini(&text);
}

int nk_interp_start(const struct nk_interp_config *cfg, const struct nk_command *cmd,
                    const char *driver, struct nk_interp **out, struct nk_err *err)
{
    struct nk_interp *i = calloc(1, sizeof *i);
    struct nk_command own = *cmd;
    struct nk_process *p;
    int child, rc;

    if (!i)
        return nk_fail(err, NK_OVERLOADED, "no memory for an interpreter");
    i->cfg = *cfg;
    i->watcher.on_event = on_event;
    rc = open_handles(i, &child);
    if (rc < 0) {
        free(i);
        return nk_fail_sys(err, -rc, "cannot start an interpreter");
    }
    own.resident = true;
    own.timeout_ms = 0;
    own.after = NULL; /* nothing is done around it: it stays */
    own.channel = child;
    if (nk_process_start(cfg->registry, &own, &i->watcher, &p, err) < 0) {
        (void)close(child);
        close_all(i);
        return -1;
    }
    send_driver(i, driver);
    (void)uv_timer_start(&i->deadline, on_deadline, NK_INTERP_START_MS, 0);
    *out = i;
    return 0;
}

struct nk_process *nk_interp_process(struct nk_interp *i)
{
    return i->watcher.process;
}

void nk_interp_run(struct nk_interp *i, uint64_t number, const char *code, bool input)
{
    struct nk_buf text = {0};

    i->number = number;
    nk_buf_add_fmt(&text, "run %llu %zu %d\n", (unsigned long long)number, strlen(code), input);
    nk_buf_add_str(&text, code);
    if (text.failed)
        fail(i, NK_OVERLOADED, "there is no memory for the code");
    else
        nk_channel_send(&i->channel, nk_buf_front(&text), nk_buf_left(&text));
    nk_buf_fini(&text);
}

/* As Ctrl-C on a terminal: also what the code waits for is told. */
void nk_interp_interrupt(struct nk_interp *i)
{
    (void)nk_process_signal_foreground(i->watcher.process, SIGINT);
}

void nk_interp_end_run(struct nk_interp *i, enum nk_reason why)
{
    i->why = why;
    nk_interp_interrupt(i);
    uv_update_time(i->cfg.loop);
    (void)uv_timer_start(&i->grace, on_grace_over, NK_INTERP_GRACE_MS, 0);
}

void nk_interp_kill(struct nk_interp *i, enum nk_reason why)
{
    nk_process_end(i->watcher.process, why);
}
