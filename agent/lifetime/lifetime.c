#include "lifetime/lifetime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/job.h"
#include "base/scope.h"
#include "lifetime/lasting.h"

#define KEPT_SHARE 8 /* activity is written again after this part of the idle time */

struct nk_lifetime {
    struct nk_lifetime_config cfg;
    uv_poll_t poll;
    int fd;              /* owned: a timerfd on CLOCK_BOOTTIME */
    uint64_t expires_ms; /* on that clock; 0: never */
    uint64_t active_ms;  /* the last activity */
    unsigned holds;
    bool paused;
    bool over;

    struct nk_jobs *jobs; /* borrowed; NULL: nothing is kept */
    const char *folder;   /* borrowed */
    int64_t created_ms;   /* wall clock */
    uint64_t kept_ms;     /* the last activity that was written */
    struct nk_job job;    /* writes `lasting` */
    struct nk_lasting lasting;
    bool busy, again; /* it is under way; and not the last */
    bool forgotten, closed;
};

static bool is_busy(const struct nk_lifetime *l)
{
    return l->holds > 0 || l->paused;
}

/* 0: it does not idle. */
static uint64_t idle_deadline(const struct nk_lifetime *l)
{
    return l->cfg.idle_ms ? l->active_ms + l->cfg.idle_ms : 0;
}

static uint64_t next_deadline(const struct nk_lifetime *l)
{
    uint64_t idle = idle_deadline(l);

    if (!idle || (l->expires_ms && l->expires_ms < idle))
        return l->expires_ms;
    return idle;
}

static void arm(struct nk_lifetime *l)
{
    uint64_t at = l->over ? 0 : next_deadline(l);
    struct itimerspec spec = {
        .it_value = {.tv_sec = (time_t)(at / 1000), .tv_nsec = (long)(at % 1000) * 1000000}};

    (void)timerfd_settime(l->fd, TFD_TIMER_ABSTIME, &spec, NULL); /* 0 disarms */
}

static void end(struct nk_lifetime *l, enum nk_lifetime_over why)
{
    l->over = true;
    arm(l);
    l->cfg.on_over(l->cfg.ctx, why);
}

static void on_due(uv_poll_t *handle, int status, int events)
{
    struct nk_lifetime *l = handle->data;
    uint64_t now = nk_clock_boot_ms();
    uint64_t ticks;

    (void)status;
    (void)events;
    if (read(l->fd, &ticks, sizeof ticks) < 0 && errno != EAGAIN)
        return;
    if (l->expires_ms && now >= l->expires_ms) {
        end(l, NK_LIFETIME_TTL);
        return;
    }
    if (is_busy(l))
        l->active_ms = now; /* what runs is activity: look again an idle time later */
    if (idle_deadline(l) && now >= idle_deadline(l))
        end(l, NK_LIFETIME_IDLE);
    else
        arm(l);
}

static void keep(struct nk_lifetime *l);

static int open_timer(void)
{
    int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);

    if (fd < 0) /* a kernel that has only the other: it does not suspend either */
        fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

int nk_lifetime_open(const struct nk_lifetime_config *cfg, struct nk_lifetime **out)
{
    struct nk_lifetime *l = calloc(1, sizeof *l);
    int rc;

    if (!l)
        return -ENOMEM;
    l->cfg = *cfg;
    l->fd = open_timer();
    rc = l->fd < 0 ? l->fd : uv_poll_init(cfg->loop, &l->poll, l->fd);
    if (rc < 0) {
        nk_close_fd(&l->fd);
        free(l);
        return rc;
    }
    l->poll.data = l;
    (void)uv_poll_start(&l->poll, UV_READABLE, on_due);
    l->active_ms = nk_clock_boot_ms();
    l->created_ms = nk_clock_wall_ms();
    nk_lifetime_set_ttl(l, cfg->ttl_ms);
    *out = l;
    return 0;
}

static void fill(struct nk_lifetime *l)
{
    l->lasting.created_ms = l->created_ms;
    l->lasting.expires_ms = l->expires_ms;
    l->lasting.idle_ms = l->cfg.idle_ms;
    l->lasting.active_ms = l->kept_ms = is_busy(l) ? nk_clock_boot_ms() : l->active_ms;
}

static void write_work(struct nk_job *job)
{
    struct nk_lifetime *l = NK_CONTAINER_OF(job, struct nk_lifetime, job);

    (void)nk_lasting_write(l->folder, &l->lasting);
}

static void leave(struct nk_lifetime *l);

static void on_written(struct nk_job *job, bool canceled)
{
    struct nk_lifetime *l = NK_CONTAINER_OF(job, struct nk_lifetime, job);

    (void)canceled;
    l->busy = false;
    if (l->closed)
        leave(l);
    else if (l->again)
        keep(l);
}

static void keep(struct nk_lifetime *l)
{
    if (!l->jobs || l->closed)
        return;
    l->again = l->busy;
    if (l->busy)
        return;
    l->busy = true;
    fill(l);
    l->job = (struct nk_job){.work = write_work, .done = on_written};
    nk_job_submit(l->jobs, &l->job);
}

/* An option that was changed since is a newer word than what was kept. */
static void go_on(struct nk_lifetime *l, const struct nk_lasting *before)
{
    uint64_t most = l->cfg.max_ttl_ms ? nk_clock_boot_ms() + l->cfg.max_ttl_ms : 0;

    l->created_ms = before->created_ms;
    if (before->ttl_option_ms == l->cfg.ttl_ms)
        l->expires_ms = before->expires_ms;
    if (before->idle_option_ms == l->cfg.idle_ms)
        l->cfg.idle_ms = before->idle_ms;
    l->active_ms = before->active_ms;
    if (most && (l->expires_ms == 0 || l->expires_ms > most))
        l->expires_ms = most;
    arm(l);
}

void nk_lifetime_keep(struct nk_lifetime *l, struct nk_jobs *jobs, const char *folder,
                      const char *id)
{
    struct nk_lasting before;
    size_t len = strlen(id);

    if (!folder || len >= sizeof l->lasting.id)
        return;
    memcpy(l->lasting.id, id, len + 1);
    l->jobs = jobs;
    l->folder = folder;
    l->lasting.ttl_option_ms = l->cfg.ttl_ms;
    l->lasting.idle_option_ms = l->cfg.idle_ms;
    if (nk_lasting_read(folder, id, &before) == 0)
        go_on(l, &before);
    keep(l);
}

void nk_lifetime_forget(struct nk_lifetime *l)
{
    l->forgotten = true;
}

int64_t nk_lifetime_created_at(const struct nk_lifetime *l)
{
    return l->created_ms;
}

static void leave_work(struct nk_job *job)
{
    struct nk_lifetime *l = NK_CONTAINER_OF(job, struct nk_lifetime, job);

    if (l->forgotten)
        nk_lasting_remove(l->folder);
    else
        (void)nk_lasting_write(l->folder, &l->lasting);
}

static void on_left(struct nk_job *job, bool canceled)
{
    (void)canceled;
    free(NK_CONTAINER_OF(job, struct nk_lifetime, job));
}

/* The last word. The loop waits for it, but is not held by a disk that does not answer. */
static void leave(struct nk_lifetime *l)
{
    if (!l->jobs) {
        free(l);
        return;
    }
    fill(l);
    l->job = (struct nk_job){.work = leave_work, .done = on_left};
    nk_job_submit(l->jobs, &l->job);
}

static void on_closed(uv_handle_t *handle)
{
    struct nk_lifetime *l = handle->data;

    l->closed = true;
    if (!l->busy)
        leave(l);
}

void nk_lifetime_close(struct nk_lifetime **slot)
{
    struct nk_lifetime *l = *slot;

    if (!l)
        return;
    *slot = NULL;
    uv_close((uv_handle_t *)&l->poll, on_closed);
    nk_close_fd(&l->fd);
}

/* The timer stays where it is: it looks when it is due, and activity only moves the deadline on. */
void nk_lifetime_touch(struct nk_lifetime *l)
{
    if (!l->cfg.idle_ms)
        return;
    l->active_ms = nk_clock_boot_ms();
    if (l->active_ms - l->kept_ms > l->cfg.idle_ms / KEPT_SHARE)
        keep(l);
}

void nk_lifetime_hold(struct nk_lifetime *l)
{
    l->holds++;
}

void nk_lifetime_release(struct nk_lifetime *l)
{
    l->holds--;
    nk_lifetime_touch(l);
}

void nk_lifetime_set_ttl(struct nk_lifetime *l, uint64_t ms)
{
    if (l->cfg.max_ttl_ms && (ms == 0 || ms > l->cfg.max_ttl_ms))
        ms = l->cfg.max_ttl_ms;
    l->expires_ms = ms ? nk_clock_boot_ms() + ms : 0;
    arm(l);
    keep(l);
}

void nk_lifetime_set_idle(struct nk_lifetime *l, uint64_t ms)
{
    l->cfg.idle_ms = ms;
    l->active_ms = nk_clock_boot_ms();
    arm(l);
    keep(l);
}

void nk_lifetime_set_paused(struct nk_lifetime *l, bool paused)
{
    l->paused = paused;
    l->active_ms = nk_clock_boot_ms();
}

static int64_t to_wall(uint64_t boot_ms)
{
    return boot_ms ? nk_clock_wall_ms() + ((int64_t)boot_ms - (int64_t)nk_clock_boot_ms()) : 0;
}

int64_t nk_lifetime_expires_at(const struct nk_lifetime *l)
{
    return to_wall(l->expires_ms);
}

int64_t nk_lifetime_idle_at(const struct nk_lifetime *l)
{
    return is_busy(l) ? 0 : to_wall(idle_deadline(l));
}

uint64_t nk_lifetime_idle_ms(const struct nk_lifetime *l)
{
    return l->cfg.idle_ms;
}
