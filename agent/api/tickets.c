#include "api/tickets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/secret.h"

struct ticket {
    struct nk_list link;
    struct nk_secret secret;
    void *identity;
    uint64_t until_ms;
};

struct nk_tickets {
    struct nk_list issued; /* the oldest first */
    unsigned count;
};

int nk_tickets_new(struct nk_tickets **out)
{
    struct nk_tickets *t = calloc(1, sizeof *t);

    if (!t)
        return -ENOMEM;
    nk_list_init(&t->issued);
    *out = t;
    return 0;
}

static void drop(struct nk_tickets *t, struct ticket *one)
{
    nk_list_remove(&one->link);
    t->count--;
    free(one);
}

static struct ticket *oldest(struct nk_tickets *t)
{
    return nk_list_empty(&t->issued) ? NULL : nk_list_entry(t->issued.next, struct ticket, link);
}

/* All live equally long, so the oldest is the first to end. */
static void drop_ended(struct nk_tickets *t)
{
    uint64_t now = nk_clock_mono_ms();
    struct ticket *one;

    while ((one = oldest(t)) && one->until_ms <= now)
        drop(t, one);
}

void nk_tickets_free(struct nk_tickets *t)
{
    struct ticket *one;

    if (!t)
        return;
    while ((one = oldest(t)))
        drop(t, one);
    free(t);
}

static unsigned count_of(const struct nk_tickets *t, const void *identity)
{
    unsigned count = 0;

    for (const struct nk_list *n = t->issued.next; n != &t->issued; n = n->next)
        count += nk_list_entry(n, const struct ticket, link)->identity == identity;
    return count;
}

int nk_tickets_issue(struct nk_tickets *t, void *identity, char out_token[NK_ID_MAX],
                     struct nk_err *err)
{
    struct ticket *one;

    drop_ended(t);
    if (t->count >= NK_TICKETS_MAX || count_of(t, identity) >= NK_TICKETS_OWNER)
        return nk_fail(err, NK_OVERLOADED, "too many tokens are waiting to be used");
    one = calloc(1, sizeof *one);
    if (!one)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    nk_id_new(out_token);
    nk_secret_set(&one->secret, out_token, strlen(out_token));
    one->identity = identity;
    one->until_ms = nk_clock_mono_ms() + NK_TICKETS_MS;
    nk_list_append(&t->issued, &one->link);
    t->count++;
    return 0;
}

int nk_tickets_take(struct nk_tickets *t, const char *token, void **out_identity)
{
    struct nk_secret asked;

    drop_ended(t);
    nk_secret_set(&asked, token, strlen(token));
    /* Digests: how far two of them agree tells nothing about the tokens. */
    for (struct nk_list *n = t->issued.next; n != &t->issued; n = n->next) {
        struct ticket *one = nk_list_entry(n, struct ticket, link);

        if (memcmp(one->secret.digest, asked.digest, sizeof asked.digest) != 0)
            continue;
        *out_identity = one->identity;
        drop(t, one);
        return 0;
    }
    return -1;
}
