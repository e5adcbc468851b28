#include "files/watched.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the number stands, or would. */
static size_t place_of(const struct nk_watched *w, int wd)
{
    size_t low = 0;
    size_t high = w->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (w->item[mid].wd < wd)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct nk_watched_folder *find(const struct nk_watched *w, int wd)
{
    size_t at = place_of(w, wd);

    return at < w->count && w->item[at].wd == wd ? &w->item[at] : NULL;
}

static void compact(struct nk_watched *w)
{
    size_t to = 0;

    for (size_t i = 0; i < w->count; i++) {
        if (w->item[i].path)
            w->item[to++] = w->item[i];
    }
    w->count = to;
}

static int reserve(struct nk_watched *w)
{
    size_t cap = w->cap ? 2 * w->cap : 16;
    struct nk_watched_folder *item;

    if (w->count == w->cap && w->live < w->count / 2)
        compact(w);
    if (w->count < w->cap)
        return 0;
    item = realloc(w->item, cap * sizeof *item);
    if (!item)
        return -ENOMEM;
    w->item = item;
    w->cap = cap;
    return 0;
}

int nk_watched_add(struct nk_watched *w, int wd, const char *path)
{
    struct nk_watched_folder *old = find(w, wd);
    char *copy = strdup(path);
    size_t at;

    if (!copy || (!old && reserve(w) < 0)) {
        free(copy);
        return -ENOMEM;
    }
    if (old) {
        w->live += !old->path;
        free(old->path);
        free(old->seen);
        old->path = copy;
        old->seen = NULL;
        old->round = w->round;
        return 0;
    }
    at = place_of(w, wd);
    memmove(&w->item[at + 1], &w->item[at], (w->count - at) * sizeof *w->item);
    w->item[at] = (struct nk_watched_folder){.wd = wd, .round = w->round, .path = copy};
    w->count++;
    w->live++;
    return 0;
}

const char *nk_watched_find(const struct nk_watched *w, int wd)
{
    const struct nk_watched_folder *f = find(w, wd);

    return f ? f->path : NULL;
}

void nk_watched_meet(struct nk_watched *w, int wd, const char *path)
{
    struct nk_watched_folder *f = find(w, wd);
    bool known = f && f->path && strcmp(f->path, path) == 0;

    if (!f || !f->path)
        return;
    free(f->seen);
    f->seen = known ? NULL : strdup(path);
}

static void let_go(struct nk_watched *w, struct nk_watched_folder *f)
{
    free(f->path);
    free(f->seen);
    f->path = f->seen = NULL;
    w->live--;
}

void nk_watched_drop(struct nk_watched *w, int wd)
{
    struct nk_watched_folder *f = find(w, wd);

    if (!f || !f->path)
        return;
    let_go(w, f);
}

static bool is_below(const char *path, const char *top)
{
    size_t len = strlen(top);

    return strncmp(path, top, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

int nk_watched_move(struct nk_watched *w, const char *path, const char *to)
{
    size_t len = strlen(path);

    for (size_t i = 0; i < w->count; i++) {
        struct nk_watched_folder *f = &w->item[i];
        size_t size;
        char *name;

        if (!f->path || !is_below(f->path, path))
            continue;
        size = strlen(to) + strlen(f->path) - len + 1;
        name = malloc(size);
        if (!name)
            return -ENOMEM;
        (void)snprintf(name, size, "%s%s", to, f->path + len);
        free(f->path);
        f->path = name;
    }
    return 0;
}

int nk_watched_leave(struct nk_watched *w, const char *path, size_t *at)
{
    for (; *at < w->count; (*at)++) {
        struct nk_watched_folder *f = &w->item[*at];

        if (!f->path || !is_below(f->path, path))
            continue;
        if (!f->seen || is_below(f->seen, path)) {
            let_go(w, f);
            return f->wd;
        }
        free(f->path);
        f->path = f->seen;
        f->seen = NULL;
    }
    return -1;
}

int nk_watched_below(const struct nk_watched *w, const char *path)
{
    for (size_t i = 0; i < w->count; i++) {
        if (w->item[i].path && is_below(w->item[i].path, path))
            return w->item[i].wd;
    }
    return -1;
}

void nk_watched_fini(struct nk_watched *w)
{
    for (size_t i = 0; i < w->count; i++) {
        free(w->item[i].path);
        free(w->item[i].seen);
    }
    free(w->item);
    *w = (struct nk_watched){0};
}
