/* Records found: by id, by name, as a list. */
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "process/registry_private.h"

static bool has_id(const struct nk_process *p, const char *id)
{
    return strcmp(p->id, id) == 0;
}

static bool has_name(const struct nk_process *p, const char *name)
{
    return p->name && strcmp(p->name, name) == 0;
}

static struct nk_process *last_in(struct nk_list *head, const char *text,
                                  bool (*is)(const struct nk_process *, const char *))
{
    for (struct nk_list *n = head->prev; n != head; n = n->prev) {
        struct nk_process *p = nk_list_entry(n, struct nk_process, link);

        if (p->listed && is(p, text))
            return p;
    }
    return NULL;
}

static struct nk_process *newest_named(struct nk_owner *o, const char *name)
{
    struct nk_process *running = last_in(&o->running, name, has_name);
    struct nk_process *held, *ended;

    if (running)
        return running;
    held = last_in(&o->held, name, has_name);
    ended = last_in(&o->ended, name, has_name);
    if (!held || !ended)
        return held ? held : ended;
    return held->serial > ended->serial ? held : ended;
}

struct nk_process *nk_registry_find(struct nk_registry *r, struct nk_owner *owner, const char *id)
{
    struct nk_owner *o = owner ? owner : &r->own;
    struct nk_list *const heads[] = {&o->running, &o->held, &o->ended};

    for (size_t i = 0; i < NK_COUNT(heads); i++) {
        struct nk_process *p = last_in(heads[i], id, has_id);

        if (p)
            return p;
    }
    return newest_named(o, id); /* after all ids: a name may look like the id of another */
}

static int newest_first(const void *a, const void *b)
{
    const struct nk_process *left = *(struct nk_process *const *)a;
    const struct nk_process *right = *(struct nk_process *const *)b;

    return left->serial < right->serial ? 1 : -1;
}

size_t nk_registry_list(struct nk_registry *r, struct nk_owner *owner, bool running_only,
                        struct nk_process **out, size_t max)
{
    struct nk_owner *o = owner ? owner : &r->own;
    struct nk_list *const heads[] = {&o->running, &o->held, &o->ended};
    size_t count = 0;

    for (size_t i = 0; i < (running_only ? 1u : NK_COUNT(heads)); i++)
        for (struct nk_list *n = heads[i]->prev; n != heads[i] && count < max; n = n->prev) {
            struct nk_process *p = nk_list_entry(n, struct nk_process, link);

            if (p->listed && p->state != NK_PROC_STARTING)
                out[count++] = p;
        }
    qsort(out, count, sizeof(struct nk_process *), newest_first);
    return count;
}

size_t nk_registry_size(struct nk_registry *r, struct nk_owner *owner)
{
    struct nk_owner *o = owner ? owner : &r->own;

    return o->running_count + o->held_count + o->ended_count;
}
