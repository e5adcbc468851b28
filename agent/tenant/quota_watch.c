#include "tenant/quota_watch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "process/registry.h"
#include "tenant/quota.h"

struct nk_quota_watch {
    uv_timer_t timer;
    struct nk_list list; /* of nk_quota.watched */
    struct nk_registry *registry;
};

static bool is_far_beyond(const struct nk_quota *q)
{
    uint64_t bytes = q->cfg.max_bytes, files = q->cfg.max_files;
    uint64_t more = bytes < NK_QUOTA_BEYOND ? bytes : NK_QUOTA_BEYOND;

    if (bytes && q->bytes + q->held_bytes > bytes && q->bytes + q->held_bytes - bytes > more)
        return true;
    return files && q->files + q->held_files > files && q->files + q->held_files - files > files;
}

static void look(struct nk_quota_watch *w, struct nk_quota *q)
{
    if (!is_far_beyond(q))
        return;
    nk_log_msg(NK_LOG_WARN, "quota", "commands that kept far more than they may were killed");
    nk_registry_kill_owner(w->registry, q->cfg.owner);
}

static void on_known(struct nk_quota_ask *ask)
{
    (void)ask; /* it is looked at with the next tick */
}

static void on_tick(uv_timer_t *timer)
{
    struct nk_quota_watch *w = timer->data;
    struct nk_list *n, *next;

    for (n = w->list.next; n != &w->list; n = next) {
        struct nk_quota *q = nk_list_entry(n, struct nk_quota, watched);

        next = n->next;
        look(w, q);
        if (!nk_registry_may_live(w->registry, q->cfg.owner)) {
            nk_list_remove(&q->watched);
            continue;
        }
        q->watch_ask.told = on_known;
        if (!nk_list_linked(&q->watch_ask.link))
            (void)nk_quota_know(q, &q->watch_ask);
    }
    if (nk_list_empty(&w->list))
        (void)uv_timer_stop(timer);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

int nk_quota_watch_open(uv_loop_t *loop, struct nk_registry *registry, struct nk_quota_watch **out)
{
    struct nk_quota_watch *w = calloc(1, sizeof *w);

    if (!w)
        return -ENOMEM;
    (void)uv_timer_init(loop, &w->timer);
    w->timer.data = w;
    w->registry = registry;
    nk_list_init(&w->list);
    *out = w;
    return 0;
}

void nk_quota_watch_close(struct nk_quota_watch **slot)
{
    struct nk_quota_watch *w = *slot;

    if (!w)
        return;
    *slot = NULL;
    while (!nk_list_empty(&w->list))
        nk_list_remove(w->list.next);
    uv_close((uv_handle_t *)&w->timer, on_closed);
}

void nk_quota_watch_add(struct nk_quota_watch *w, struct nk_quota *q)
{
    if (!nk_quota_is_set(q) || nk_list_linked(&q->watched))
        return;
    nk_list_append(&w->list, &q->watched);
    if (!uv_is_active((uv_handle_t *)&w->timer))
        (void)uv_timer_start(&w->timer, on_tick, NK_QUOTA_WATCH_MS, NK_QUOTA_WATCH_MS);
}
