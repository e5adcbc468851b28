#include "files/tar_links.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct nk_tar_linked {
    dev_t dev;
    ino_t ino;
    size_t name; /* where it stands in names, plus 1; 0: the slot is empty */
};

static struct nk_tar_linked *find(const struct nk_tar_links *l, dev_t dev, ino_t ino)
{
    uint64_t hash = ((uint64_t)ino ^ (uint64_t)dev << 40) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 20) & (l->cap - 1);

    while (l->slot[at].name && (l->slot[at].ino != ino || l->slot[at].dev != dev))
        at = (at + 1) & (l->cap - 1);
    return &l->slot[at];
}

static bool grow(struct nk_tar_links *l)
{
    struct nk_tar_links bigger = {.count = l->count, .cap = l->cap ? l->cap * 2 : 256};

    if (l->count * 4 < l->cap * 3)
        return true;
    bigger.slot = calloc(bigger.cap, sizeof *bigger.slot);
    if (!bigger.slot)
        return l->count < l->cap - 1;
    for (size_t i = 0; i < l->cap; i++) {
        if (l->slot[i].name)
            *find(&bigger, l->slot[i].dev, l->slot[i].ino) = l->slot[i];
    }
    free(l->slot);
    l->slot = bigger.slot;
    l->cap = bigger.cap;
    return true;
}

const char *nk_tar_links_seen(struct nk_tar_links *l, const struct stat *st, const char *name)
{
    size_t len = strlen(name) + 1;
    struct nk_tar_linked *slot;

    if (!grow(l) || !l->slot)
        return NULL;
    slot = find(l, st->st_dev, st->st_ino);
    if (slot->name)
        return (const char *)nk_buf_front(&l->names) + slot->name - 1;
    if (nk_buf_left(&l->names) + len > NK_TAR_LINKS_BYTES)
        return NULL;
    nk_buf_add(&l->names, name, len);
    if (l->names.failed)
        return NULL;
    *slot = (struct nk_tar_linked){
        .dev = st->st_dev, .ino = st->st_ino, .name = nk_buf_left(&l->names) - len + 1};
    l->count++;
    return NULL;
}

void nk_tar_links_fini(struct nk_tar_links *l)
{
    free(l->slot);
    nk_buf_fini(&l->names);
    *l = (struct nk_tar_links){0};
}
