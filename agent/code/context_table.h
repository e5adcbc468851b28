/*
 * All code contexts of the sandbox: made, found by their owner, bounded in number, ended.
 *
 * Another owner's context does not exist. Owned by app; loop thread only.
 */
#ifndef NK_CODE_CONTEXT_TABLE_H
#define NK_CODE_CONTEXT_TABLE_H

#include <stddef.h>
#include <uv.h>

#include "code/context.h"

struct nk_context_table;

struct nk_context_table_config {
    uv_loop_t *loop; /* borrowed: outlive it */
    struct nk_registry *registry;
    unsigned max; /* an owner's */
};

int nk_context_table_open(const struct nk_context_table_config *cfg,
                          struct nk_context_table **out);    /* or -errno */
void nk_context_table_close(struct nk_context_table **slot); /* nothing of them runs any more */

/* Whether the owner may have one more. 0, or -1 with NK_BUSY. */
int nk_context_table_check(const struct nk_context_table *cs, const struct nk_owner *owner,
                           struct nk_err *err);
/* `launch` is taken, also on failure: prepared, its command tells whose it is. */
int nk_context_table_make(struct nk_context_table *cs, struct nk_run *launch,
                          struct nk_context **out, struct nk_err *err);
struct nk_context *nk_context_table_find(const struct nk_context_table *cs,
                                         const struct nk_owner *owner, const char *id);
struct nk_context *nk_context_table_find_first(const struct nk_context_table *cs,
                                               const struct nk_process *first);
/* In the order they were made: the next after `at` (NULL: the first), or NULL. */
struct nk_context *nk_context_table_next(const struct nk_context_table *cs,
                                         const struct nk_owner *owner, struct nk_context *at);
void nk_context_table_delete(struct nk_context_table *cs, struct nk_context *c);

#endif
