#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/scope.h"
#include "process/live.h"
#include "process/registry.h"

#define PIPE_SIZE (64u * 1024u) /* as the kernel makes them */
#define WIDEN_FROM (1024u * 1024u)
#define STALLED_MS 1000 /* a reader that took nothing for so long stands still */

/* When what a command without followers writes is first looked at: most are over before, and then
 * the loop never has to learn of their pipes. */
#define FIRST_LOOK_MS 2
#define LOOK_AGAIN_MS 50

static void on_readable(uv_poll_t *handle, int status, int events)
{
    struct nk_output *o = handle->data;

    (void)events;
    if (status < 0) { /* EPOLLERR: the read tells what it is */
        o->armed = false;
        nk_output_arm(o);
    }
    nk_output_read(o, false);
}

int nk_output_open(struct nk_output *o)
{
    int rc;

    if (o->fd < 0 || o->handle)
        return 0;
    rc = uv_poll_init(o->live->quiet.loop, &o->poll, o->fd);
    if (rc < 0)
        return rc;
    o->poll.data = o;
    o->handle = true;
    o->live->open_handles++;
    return 0;
}

void nk_output_arm(struct nk_output *o)
{
    if (o->fd < 0 || o->armed || o->live->paused || nk_output_open(o) < 0)
        return;
    o->armed = uv_poll_start(&o->poll, UV_READABLE, on_readable) == 0;
}

static void disarm(struct nk_output *o)
{
    if (o->fd < 0 || !o->armed)
        return;
    (void)uv_poll_stop(&o->poll);
    o->armed = false;
}

static void on_closed(uv_handle_t *handle)
{
    nk_live_unhandle(((struct nk_output *)handle->data)->live);
}

void nk_output_close(struct nk_output *o)
{
    if (o->fd < 0)
        return;
    if (o->handle)
        uv_close((uv_handle_t *)&o->poll, on_closed); /* out of epoll before the descriptor goes */
    nk_close_fd(&o->fd);
    o->must_read = 0;
}

static void arm_both(struct nk_live *l)
{
    nk_output_arm(&l->out[0]);
    nk_output_arm(&l->out[1]);
}

static void on_first_look(uv_timer_t *timer)
{
    struct nk_live *l = timer->data;

    arm_both(l);
    for (int i = 0; i < 2; i++)
        if (l->out[i].fd >= 0 && !l->out[i].handle)
            (void)uv_timer_start(timer, on_first_look, LOOK_AGAIN_MS, 0);
}

void nk_output_begin(struct nk_live *l)
{
    if (!l->process->captures) {
        arm_both(l);
        return;
    }
    (void)uv_timer_start(&l->quiet, on_first_look, FIRST_LOOK_MS, 0);
}

/* Whose bytes they are that are read. */
struct nk_process *nk_output_sink(const struct nk_live *l)
{
    return l->sink ? l->sink : l->process;
}

uint64_t nk_output_left(const struct nk_live *l)
{
    return l->out[0].must_read + l->out[1].must_read;
}

static uint64_t hold_window(uint64_t read_so_far)
{
    uint64_t window = read_so_far / 4;

    if (window < NK_HOLD_MIN)
        return NK_HOLD_MIN;
    return window < NK_HOLD_MAX ? window : NK_HOLD_MAX;
}

/* How many bytes may be read before a holding watcher would fall too far behind. */
size_t nk_output_room(const struct nk_process *p, uint64_t *out_keep)
{
    uint64_t keep = UINT64_MAX;
    uint64_t behind, window;

    for (const struct nk_list *n = p->watchers.next; n != &p->watchers; n = n->next) {
        const struct nk_watcher *w = nk_list_entry(n, const struct nk_watcher, link);

        if (w->holds && w->pos < keep)
            keep = w->pos;
    }
    *out_keep = keep;
    if (keep == UINT64_MAX)
        return NK_READ_MAX;
    behind = keep < p->log.end ? p->log.end - keep : 0;
    window = hold_window(keep);
    return behind < window ? (size_t)(window - behind) : 0;
}

static void clock_stop(struct nk_live *l)
{
    if (!l->process->reaped || l->paused || !uv_is_active((uv_handle_t *)&l->quiet))
        return;
    l->quiet_ms += (unsigned)(uv_now(l->quiet.loop) - l->quiet_from);
    (void)uv_timer_stop(&l->quiet);
}

static void on_quiet(uv_timer_t *timer);

/* (Re)starts the quiet time, within what is left of the longest. */
static void clock_start(struct nk_live *l)
{
    unsigned left;

    clock_stop(l);
    left = l->quiet_ms < NK_QUIET_MAX_MS ? NK_QUIET_MAX_MS - l->quiet_ms : 1;
    l->quiet_from = uv_now(l->quiet.loop);
    (void)uv_timer_start(&l->quiet, on_quiet, left < NK_QUIET_MS ? left : NK_QUIET_MS, 0);
}

static void on_quiet(uv_timer_t *timer)
{
    struct nk_live *l = timer->data;

    l->quiet_ms += (unsigned)(uv_now(timer->loop) - l->quiet_from);
    if (nk_output_left(l) > 0) {
        clock_start(l);
        if (l->terminal)
            nk_output_read(&l->out[0], true);
        return;
    }
    l->process->drained = true;
    nk_process_step(l->process);
}

static bool clock_runs(const struct nk_live *l)
{
    const struct nk_process *p = l->process;

    return p->reaped && !p->over && !l->paused && !nk_registry_is_paused(p->registry);
}

void nk_output_clock(struct nk_live *l, bool run)
{
    if (!run)
        clock_stop(l);
    else if (l->process->reaped && !l->process->over && !l->paused)
        clock_start(l);
}

/* A reader that stands still costs what it has not read, not what it has. */
static void on_stalled(uv_timer_t *timer)
{
    struct nk_live *l = timer->data;
    uint64_t keep;

    (void)nk_output_room(nk_output_sink(l), &keep);
    nk_outlog_forget(&nk_output_sink(l)->log, keep);
}

/* The clock of the end stands still while nothing is read; its timer watches the reader. */
static void pause_reading(struct nk_live *l)
{
    clock_stop(l);
    l->paused = true;
    disarm(&l->out[0]);
    disarm(&l->out[1]);
    (void)uv_timer_start(&l->quiet, on_stalled, STALLED_MS, 0);
}

static void on_gone(uv_timer_t *timer)
{
    struct nk_live *l = timer->data;
    struct nk_process *p = l->process;

    nk_process_ref(p);
    nk_output_read(&l->out[0], true);
    if (p->live && !l->paused) {
        nk_output_close(&l->out[0]);
        nk_live_settle(l);
    }
    nk_process_unref(p);
}

/* The clock of the end is not needed any more: its timer takes this out of the caller's way. */
void nk_output_gone(struct nk_live *l)
{
    l->gone = true;
    if (!l->paused)
        (void)uv_timer_start(&l->quiet, on_gone, 0, 0);
}

void nk_output_resume(struct nk_live *l)
{
    uint64_t keep;

    if (!l->paused || nk_output_room(nk_output_sink(l), &keep) < NK_HOLD_MIN / 2)
        return;
    (void)uv_timer_stop(&l->quiet);
    l->paused = false;
    arm_both(l);
    if (clock_runs(l))
        clock_start(l);
    if (l->gone)
        nk_output_gone(l);
}

static void note_bytes(struct nk_output *o, const uint8_t *data, size_t n)
{
    struct nk_process *p = nk_output_sink(o->live);

    nk_outlog_commit(&p->log, o->stream, n);
    nk_registry_count_read(p->registry, n);
    o->must_read -= n < o->must_read ? n : o->must_read;
    if (p->over) {
        nk_registry_recount(p);
        return;
    }
    p->sizes[o->stream] += n;
    if (p->captures)
        nk_capture_write(&p->captures[o->stream - 1], data, n);
}

/* No memory for the log of an ended command: its background child must not be held up by that. */
static ssize_t read_away(struct nk_output *o)
{
    uint8_t lost[4096];
    ssize_t n = read(o->fd, lost, sizeof lost);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n > 0)
        nk_registry_count_read(o->live->process->registry, (size_t)n);
    return n > 0 ? 0 : -1;
}

/* A full pipe is a writer that waits: with a larger one it waits less often. Where nobody has shown
 * that they read on, it stays small, because what a stalled reader costs is in there too. */
static void widen(struct nk_output *o, size_t got)
{
    if (o->wide || got < PIPE_SIZE || nk_output_sink(o->live)->log.end < WIDEN_FROM)
        return;
    o->wide = true;
    (void)fcntl(o->fd, F_SETPIPE_SZ, (int)NK_READ_MAX); /* of a terminal, or over the quota: no */
}

/* What one read gave: bytes, 0 nothing more now, -1 the end, -2 no room. */
static ssize_t read_once(struct nk_output *o, size_t budget, size_t *out_asked)
{
    struct nk_live *l = o->live;
    struct nk_process *p = nk_output_sink(l);
    uint64_t keep;
    size_t room = nk_output_room(p, &keep);
    size_t want = l->read_size < budget ? l->read_size : budget;
    uint8_t *span;
    ssize_t n;

    if (room == 0)
        return -2;
    span = nk_outlog_reserve(&p->log, want < room ? want : room, keep, out_asked);
    if (!span)
        return keep == UINT64_MAX ? read_away(o) : -2;
    do
        n = read(o->fd, span, *out_asked);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0) /* EIO is how a terminal ends */
        return -1;
    note_bytes(o, span, (size_t)n);
    widen(o, (size_t)n);
    if ((size_t)n == l->read_size && l->read_size < NK_READ_MAX)
        l->read_size *= 2;
    return n;
}

void nk_output_read(struct nk_output *o, bool until_dry)
{
    struct nk_live *l = o->live;
    struct nk_process *p = l->process;
    size_t got = 0, asked = 0;
    ssize_t n = 0;

    if (o->fd < 0 || l->paused)
        return;
    if (l->terminal && o->must_read > 0)
        until_dry = true;
    while (got < NK_READ_MAX) {
        n = read_once(o, NK_READ_MAX - got, &asked);
        if (n <= 0)
            break;
        got += (size_t)n;
        if ((size_t)n < asked && !until_dry)
            break;
    }
    if (n == 0 && l->terminal)
        o->must_read = 0;
    nk_process_ref(p);
    if (n == -1)
        nk_output_close(o);
    if (n == -2)
        pause_reading(l);
    if (got > 0 && clock_runs(l))
        clock_start(l);
    if (got > 0)
        nk_process_emit(nk_output_sink(l), NK_PROC_EV_OUTPUT, NULL);
    if (p->live)
        nk_hosted_read(l);
    if (n == -1) {
        nk_process_step(p);
        if (p->live)
            nk_live_settle(p->live);
    }
    nk_process_unref(p);
}

/* A terminal tells only of a part: it is read until it is dry, or as much as it can ever hold. */
static uint64_t held_by(const struct nk_output *o)
{
    int held = 0;

    if (o->fd < 0)
        return 0;
    if (o->live->terminal)
        return NK_READ_MAX;
    return ioctl(o->fd, FIONREAD, &held) == 0 ? (uint64_t)held : 0;
}

/* What is in them now must be read before an end is told. */
void nk_output_mark(struct nk_live *l)
{
    for (int i = 0; i < 2; i++)
        l->out[i].must_read = held_by(&l->out[i]);
}

void nk_output_reaped(struct nk_live *l)
{
    struct nk_process *p = l->process;

    if (!l->paused)
        (void)uv_timer_stop(&l->quiet);
    nk_output_mark(l);
    for (int i = 0; i < 2 && p->live; i++)
        nk_output_read(&l->out[i], true);
    if (p->live)
        arm_both(l);
    if (p->live && clock_runs(l) && !uv_is_active((uv_handle_t *)&l->quiet))
        clock_start(l);
}
