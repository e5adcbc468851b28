/*
 * How long the sandbox lives: a time to live, an idle time, and what counts as activity.
 *
 * Deadlines are on CLOCK_BOOTTIME: they go on while the machine is suspended, and no jump of the wall
 * clock expires or immortalises anything. One timer of the kernel, armed for the next deadline only;
 * no wake-ups between. Owned by app; loop thread only, but for the job that writes.
 */
#ifndef NK_LIFETIME_LIFETIME_H
#define NK_LIFETIME_LIFETIME_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct nk_lifetime;

enum nk_lifetime_over { NK_LIFETIME_TTL, NK_LIFETIME_IDLE };

struct nk_lifetime_config {
    uv_loop_t *loop;
    uint64_t ttl_ms; /* 0: none, in each */
    uint64_t max_ttl_ms;
    uint64_t idle_ms;
    /* The time is over; called once. */
    void (*on_over)(void *ctx, enum nk_lifetime_over why);
    void *ctx; /* borrowed: outlives the lifetime */
};

int nk_lifetime_open(const struct nk_lifetime_config *cfg, struct nk_lifetime **out);
void nk_lifetime_close(struct nk_lifetime **slot);

/* Goes on with what an earlier daemon of the sandbox `id` left in the folder, and leaves the same for
 * the next. Once, right after open. A folder that is not there, or not only ours to change, keeps
 * nothing. What is kept of the last activity may be a little older than it was. */
struct nk_jobs;
void nk_lifetime_keep(struct nk_lifetime *l, struct nk_jobs *jobs /* borrowed: outlives it */,
                      const char *folder /* borrowed: outlives it */, const char *id);
/* The life is over, by a wish and not by the daemon's: nothing is left for the next. */
void nk_lifetime_forget(struct nk_lifetime *l);
int64_t nk_lifetime_created_at(const struct nk_lifetime *l); /* wall clock, ms since 1970 */

void nk_lifetime_touch(struct nk_lifetime *l); /* activity, at this moment */
/* A request that is worked on (a running command, an open stream, an upload) is activity as long as
 * it lasts. */
void nk_lifetime_hold(struct nk_lifetime *l);
void nk_lifetime_release(struct nk_lifetime *l);

/* From now on; cut to the longest that is allowed. 0: none (the longest, where there is one). */
void nk_lifetime_set_ttl(struct nk_lifetime *l, uint64_t ms);
void nk_lifetime_set_idle(struct nk_lifetime *l, uint64_t ms); /* 0: none; counts from now */
/* While paused nothing idles: the time starts anew at the resume. */
void nk_lifetime_set_paused(struct nk_lifetime *l, bool paused);

/* For people: wall-clock times in ms since 1970, 0: none. */
int64_t nk_lifetime_expires_at(const struct nk_lifetime *l);
int64_t nk_lifetime_idle_at(const struct nk_lifetime *l);
uint64_t nk_lifetime_idle_ms(const struct nk_lifetime *l);

#endif
