#include "lifetime/lifetime.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"

struct nk_lifetime {
    struct nk_lifetime_config cfg;
    uv_poll_t poll;
    int fd;              /* owned: a timerfd on CLOCK_BOOTTIME */
    uint64_t expires_ms; /* on that clock; 0: never */
    uint64_t active_ms;  /* the last activity */
    unsigned holds;
    bool paused;
    bool over;
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
    nk_lifetime_set_ttl(l, cfg->ttl_ms);
    *out = l;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
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
    if (l->cfg.idle_ms)
        l->active_ms = nk_clock_boot_ms();
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
}

void nk_lifetime_set_idle(struct nk_lifetime *l, uint64_t ms)
{
    l->cfg.idle_ms = ms;
    l->active_ms = nk_clock_boot_ms();
    arm(l);
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
