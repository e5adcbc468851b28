#include "code/context_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "code/run.h"

struct nk_context_table {
    struct nk_context_table_config cfg;
    struct nk_list all;
};

int nk_context_table_open(const struct nk_context_table_config *cfg, struct nk_context_table **out)
{
    struct nk_context_table *cs = calloc(1, sizeof *cs);

    if (!cs)
        return -ENOMEM;
    cs->cfg = *cfg;
    nk_list_init(&cs->all);
    *out = cs;
    return 0;
}

void nk_context_table_delete(struct nk_context_table *cs, struct nk_context *c)
{
    (void)cs;
    if (!nk_list_linked(nk_context_link(c)))
        return;
    nk_list_remove(nk_context_link(c));
    nk_context_close(c);
    nk_context_unref(c);
}

void nk_context_table_close(struct nk_context_table **slot)
{
    struct nk_context_table *cs = *slot;

    if (!cs)
        return;
    *slot = NULL;
    while (!nk_list_empty(&cs->all))
        nk_context_table_delete(cs, nk_context_linked(cs->all.next));
    free(cs);
}

struct nk_context *nk_context_table_next(const struct nk_context_table *cs,
                                         const struct nk_owner *owner, struct nk_context *at)
{
    const struct nk_list *n = at ? nk_context_link(at) : &cs->all;

    for (n = n->next; n != &cs->all; n = n->next) {
        struct nk_context *c = nk_context_linked((struct nk_list *)n);

        if (nk_context_owner(c) == owner)
            return c;
    }
    return NULL;
}

int nk_context_table_check(const struct nk_context_table *cs, const struct nk_owner *owner,
                           struct nk_err *err)
{
    struct nk_context *c = NULL;
    unsigned count = 0;

    while ((c = nk_context_table_next(cs, owner, c)) != NULL)
        count++;
    if (count < cs->cfg.max)
        return 0;
    return nk_fail(err, NK_BUSY, "all %u contexts are taken", cs->cfg.max);
}

int nk_context_table_make(struct nk_context_table *cs, struct nk_run *launch,
                          struct nk_context **out, struct nk_err *err)
{
    struct nk_context *c;

    if (nk_context_table_check(cs, nk_run_command(launch)->owner, err) < 0) {
        nk_run_free(launch);
        return -1;
    }
    if (nk_context_new(cs->cfg.loop, cs->cfg.registry, launch, &c, err) < 0)
        return -1;
    nk_list_append(&cs->all, nk_context_link(c));
    *out = c;
    return 0;
}

struct nk_context *nk_context_table_find(const struct nk_context_table *cs,
                                         const struct nk_owner *owner, const char *id)
{
    struct nk_context *c = NULL;

    while ((c = nk_context_table_next(cs, owner, c)) != NULL)
        if (strcmp(nk_context_info(c).id, id) == 0)
            return c;
    return NULL;
}

struct nk_context *nk_context_table_find_first(const struct nk_context_table *cs,
                                               const struct nk_process *first)
{
    for (struct nk_list *n = cs->all.next; n != &cs->all; n = n->next)
        if (nk_context_is_of(nk_context_linked(n), first))
            return nk_context_linked(n);
    return NULL;
}
