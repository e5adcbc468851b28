#include "tenant/quota.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "process/registry.h"

void nk_quota_init(struct nk_quota *q, const struct nk_quota_config *cfg)
{
    *q = (struct nk_quota){.cfg = *cfg};
    nk_list_init(&q->asks);
    nk_list_init(&q->holders);
}

void nk_quota_stop(struct nk_quota *q)
{
    if (q->task.running)
        nk_task_stop(&q->task);
}

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static bool is_stale(const struct nk_quota *q)
{
    return !q->known || q->changed || q->activity != q->cfg.owner->activity;
}

/* What commands left running may write at any time, but without one nothing is written. */
static bool may_be_stale(const struct nk_quota *q)
{
    return is_stale(q) || q->cfg.owner->activity > 0;
}

static uint64_t rest_ms(const struct nk_quota *q)
{
    uint64_t cost_ms = q->cost_ns / 1000000;
    uint64_t fair = cost_ms * NK_QUOTA_SHARE;

    if (is_stale(q) && cost_ms <= NK_QUOTA_CHEAP_MS)
        return 0;
    return fair > NK_QUOTA_REST_MS ? fair : NK_QUOTA_REST_MS;
}

static bool needs_count(const struct nk_quota *q)
{
    if (!q->known)
        return true;
    return may_be_stale(q) && nk_clock_mono_ms() - q->ended_ms >= rest_ms(q);
}

/* Time that others took does not make a count dear. */
static uint64_t cpu_ns(void)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int slice(struct nk_task *t)
{
    struct nk_quota *q = NK_CONTAINER_OF(t, struct nk_quota, task);
    uint64_t began_ns = cpu_ns();
    int rc = nk_tally_go(&q->tally, t->until_ns);

    q->next_cost_ns += cpu_ns() - began_ns;
    return rc > 0 ? NK_TASK_MORE : 0;
}

static void begin(struct nk_quota *q);

static void tell(struct nk_quota *q)
{
    struct nk_list todo;

    if (nk_list_empty(&q->asks))
        return;
    todo = q->asks;
    todo.next->prev = &todo;
    todo.prev->next = &todo;
    nk_list_init(&q->asks);
    while (!nk_list_empty(&todo)) {
        struct nk_quota_ask *ask = nk_list_entry(todo.next, struct nk_quota_ask, link);

        nk_list_remove(&ask->link);
        ask->told(ask);
    }
}

/* What was kept meanwhile may have been seen or not; rather too much than too little. */
static void take_over(struct nk_quota *q)
{
    q->bytes = q->tally.bytes + q->kept_bytes;
    q->files = q->tally.files + q->kept_files;
    q->known = true;
    q->activity = q->next_activity;
}

static void on_counted(struct nk_task *t)
{
    struct nk_quota *q = NK_CONTAINER_OF(t, struct nk_quota, task);

    q->ended_ms = nk_clock_mono_ms();
    q->cost_ns = q->next_cost_ns;
    if (t->result == 0)
        take_over(q);
    nk_tally_fini(&q->tally);
    free(q->skip);
    q->skip = NULL;
    if (t->result == 0 && ++q->rounds < 2 && !nk_list_empty(&q->asks) && needs_count(q))
        begin(q);
    else
        tell(q);
}

/* What is being written is held, so it is not counted. Without memory it counts twice for a while. */
static size_t list_writers(struct nk_quota *q)
{
    size_t count = 0;

    for (const struct nk_list *n = q->holders.next; n != &q->holders; n = n->next)
        count++;
    q->skip = count > 0 ? calloc(count, sizeof *q->skip) : NULL;
    if (!q->skip)
        return 0;
    count = 0;
    for (const struct nk_list *n = q->holders.next; n != &q->holders; n = n->next) {
        const struct nk_holder *h = nk_list_entry(n, const struct nk_holder, link);

        if (h->writes)
            q->skip[count++] = h->file;
    }
    return count;
}

/* So far beyond that the sum does not matter any more. */
static uint64_t enough(uint64_t max, uint64_t more)
{
    uint64_t twice = max > UINT64_MAX / 2 ? UINT64_MAX : 2 * max;

    if (max == 0)
        return 0;
    return twice > UINT64_MAX - more ? UINT64_MAX : twice + more;
}

static void begin(struct nk_quota *q)
{
    size_t writers = list_writers(q);

    q->tally = (struct nk_tally){.roots = q->cfg.roots,
                                 .free = q->cfg.free,
                                 .skip = q->skip,
                                 .skip_count = writers,
                                 .enough_bytes = enough(q->cfg.max_bytes, NK_QUOTA_ENOUGH_BYTES),
                                 .enough_files = enough(q->cfg.max_files, NK_QUOTA_ENOUGH_FILES),
                                 .of_one = q->cfg.of_one,
                                 .uid = q->cfg.uid};
    q->next_activity = q->cfg.owner->activity;
    q->changed = false;
    q->kept_bytes = q->kept_files = 0;
    q->next_cost_ns = 0;
    q->began_ms = nk_clock_mono_ms();
    q->task.slice = slice;
    q->task.over = on_counted;
    nk_task_start(&q->task, q->cfg.jobs, NULL, q->cfg.share);
}

bool nk_quota_know(struct nk_quota *q, struct nk_quota_ask *ask)
{
    if (!nk_quota_is_set(q) || (!q->task.running && !needs_count(q)))
        return true;
    nk_list_append(&q->asks, &ask->link);
    q->rounds = 0;
    if (!q->task.running)
        begin(q);
    return false;
}

void nk_quota_leave(struct nk_quota_ask *ask)
{
    if (ask->link.next)
        nk_list_remove(&ask->link);
}

static int fail(const struct nk_quota *q, bool bytes, struct nk_err *err)
{
    if (bytes)
        return nk_fail(err, NK_QUOTA_EXCEEDED,
                       "at most %" PRIu64 " bytes may be kept, %" PRIu64 " are there",
                       q->cfg.max_bytes, q->bytes + q->held_bytes);
    return nk_fail(err, NK_QUOTA_EXCEEDED,
                   "at most %" PRIu64 " files may be kept, %" PRIu64 " are there", q->cfg.max_files,
                   q->files + q->held_files);
}

int nk_quota_check(const struct nk_quota *q, struct nk_err *err)
{
    if (q->cfg.max_bytes && q->bytes + q->held_bytes > q->cfg.max_bytes)
        return fail(q, true, err);
    if (q->cfg.max_files && q->files + q->held_files > q->cfg.max_files)
        return fail(q, false, err);
    return 0;
}

uint64_t nk_quota_bytes_left(const struct nk_quota *q)
{
    if (!q->cfg.max_bytes)
        return UINT64_MAX;
    return minus(q->cfg.max_bytes, q->bytes + q->held_bytes);
}

uint64_t nk_quota_files_left(const struct nk_quota *q)
{
    if (!q->cfg.max_files)
        return UINT64_MAX;
    return minus(q->cfg.max_files, q->files + q->held_files);
}

void nk_quota_note(struct nk_quota *q)
{
    q->changed = true;
}

void nk_holder_init(struct nk_holder *h, struct nk_quota *q)
{
    *h = (struct nk_holder){.quota = q && nk_quota_is_set(q) ? q : NULL,
                            .since_ms = nk_clock_mono_ms()};
    if (h->quota)
        nk_list_append(&q->holders, &h->link);
}

void nk_holder_file(struct nk_holder *h, const struct nk_tally_file *file)
{
    h->file = *file;
    h->writes = true;
}

/* One at a time: else many could fill the disk, each in place of the same file. */
void nk_holder_credit(struct nk_holder *h, uint64_t bytes)
{
    if (!h->quota || h->quota->credited || bytes == 0)
        return;
    h->quota->credited = true;
    h->credited = true;
    h->credit = bytes;
}

int nk_holder_take(struct nk_holder *h, uint64_t bytes, uint64_t files, struct nk_err *err)
{
    struct nk_quota *q = h->quota;

    if (!q)
        return 0;
    if (bytes > 0 && q->cfg.max_bytes) {
        uint64_t left = nk_quota_bytes_left(q);
        uint64_t room = h->credit > UINT64_MAX - left ? UINT64_MAX : left + h->credit;

        /* The credit stands for what is held beyond the bound. */
        if (bytes > room)
            return fail(q, true, err);
        h->credit -= bytes > left ? bytes - left : 0;
    }
    if (files > nk_quota_files_left(q))
        return fail(q, false, err);
    q->held_bytes += bytes;
    q->held_files += files;
    h->bytes += bytes;
    h->files += files;
    return 0;
}

static void let_go(struct nk_holder *h)
{
    struct nk_quota *q = h->quota;

    nk_list_remove(&h->link);
    q->held_bytes -= h->bytes;
    q->held_files -= h->files;
    /* A count that ran meanwhile, or runs, saw only a part of it. */
    if (q->task.running || q->began_ms >= h->since_ms)
        q->changed = true;
    if (h->credited)
        q->credited = false;
    h->quota = NULL;
}

void nk_holder_keep(struct nk_holder *h, uint64_t bytes, uint64_t files, uint64_t gone_bytes)
{
    struct nk_quota *q = h->quota;

    if (!q)
        return;
    q->bytes = minus(q->bytes + bytes, gone_bytes);
    q->files += files;
    q->kept_bytes += bytes;
    q->kept_files += files;
    let_go(h);
}

void nk_holder_drop(struct nk_holder *h)
{
    if (h->quota)
        let_go(h);
}
