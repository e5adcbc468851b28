#include "files/tar_dirs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "files/tar_place.h"

struct nk_tar_dir {
    const char *path; /* borrowed: into names; set when they are sorted */
    size_t at;        /* of its path in names; grows with every one added */
    mode_t mode;
    struct timespec mtime;
};

int nk_tar_dirs_add(struct nk_tar_dirs *d, const char *path, mode_t mode,
                    const struct timespec *mtime)
{
    if (d->count == d->cap) {
        size_t cap = d->cap ? d->cap * 2 : 64;
        struct nk_tar_dir *item = reallocarray(d->item, cap, sizeof *item);

        if (!item)
            return -ENOMEM;
        d->item = item;
        d->cap = cap;
    }
    d->names.max = NK_TAR_DIRS_BYTES;
    d->item[d->count].at = nk_buf_left(&d->names);
    d->item[d->count].mode = mode;
    d->item[d->count].mtime = *mtime;
    nk_buf_add(&d->names, path, strlen(path) + 1);
    if (d->names.failed)
        return -ENOMEM;
    d->count++;
    return 0;
}

/* What is inside comes before what it is in, and of one folder told twice the later one first. */
static int compare(const void *a, const void *b)
{
    const struct nk_tar_dir *x = a;
    const struct nk_tar_dir *y = b;
    int order = strcmp(y->path, x->path);

    if (order != 0)
        return order;
    return x->at < y->at ? 1 : -1;
}

static void sort(struct nk_tar_dirs *d)
{
    for (size_t i = 0; i < d->count; i++)
        d->item[i].path = (const char *)nk_buf_front(&d->names) + d->item[i].at;
    qsort(d->item, d->count, sizeof *d->item, compare);
}

void nk_tar_dirs_apply(struct nk_tar_dirs *d, struct nk_tar_way *way)
{
    if (d->count == 0)
        return;
    sort(d);
    for (size_t i = 0; i < d->count; i++) {
        const struct nk_tar_dir *dir = &d->item[i];
        struct nk_tar_place place;

        if (i > 0 && strcmp(dir->path, d->item[i - 1].path) == 0)
            continue;
        if (nk_tar_place_enter(way, dir->path, false, &place) == 0)
            (void)nk_tar_place_set_dir(&place, dir->mode, &dir->mtime);
    }
}

void nk_tar_dirs_fini(struct nk_tar_dirs *d)
{
    free(d->item);
    nk_buf_fini(&d->names);
    *d = (struct nk_tar_dirs){0};
}
