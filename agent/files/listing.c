#include "files/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static int begin(struct nk_listing *l)
{
    struct nk_walk_options options = {
        .depth = l->recursive ? l->depth : 1, .path_max = NK_PLACE_PATH_MAX, .tolerant = true};
    int fd, rc;

    if (nk_path_resolve(l->roots, l->path, l->path_len, NK_PATH_FOLLOW, &l->place, &l->task.err) <
        0)
        return -1;
    fd = nk_place_open_dir(&l->place, O_RDONLY, &l->task.err);
    if (fd < 0)
        return -1;
    options.after = l->after;
    rc = nk_walk_new(fd, &options, &l->tree);
    return rc < 0 ? nk_place_fail(&l->place, -rc, &l->task.err) : NK_TASK_MORE;
}

/* The form of the request, the folder's path in front. */
static const char *full_path(struct nk_listing *l, const struct nk_walk_entry *e)
{
    const char *folder = l->place.path;
    size_t len = strcmp(folder, ".") == 0 ? 0 : strlen(folder);

    if (len + 1 + e->path_len > NK_PLACE_PATH_MAX)
        return NULL;
    memcpy(l->text, folder, len);
    if (len > 0 && folder[len - 1] != '/')
        l->text[len++] = '/';
    memcpy(l->text + len, e->path, e->path_len + 1);
    return l->text;
}

static int tell(struct nk_listing *l, const struct nk_walk_entry *e)
{
    struct nk_entry entry;

    entry.path = full_path(l, e);
    entry.name = e->name;
    if (!entry.path) {
        l->too_deep = true;
        return 0;
    }
    nk_entry_fill(&entry, e->dir, e->name, &e->st, &l->owners);
    free(l->last);
    l->last = strdup(e->path);
    l->count++;
    return l->last ? l->each(l, &entry) : -1;
}

/* There is one more than fits: the page ends before it. */
static int end_page(struct nk_listing *l)
{
    l->next = l->last;
    l->last = NULL;
    return 0;
}

int nk_listing_read(struct nk_task *t)
{
    struct nk_listing *l = NK_CONTAINER_OF(t, struct nk_listing, task);
    struct nk_walk_entry e;

    if (!l->tree)
        return begin(l);
    while (!nk_task_due(t)) {
        int rc = nk_walk_next(l->tree, t->until_ns, &e);

        l->too_deep |= nk_walk_is_cut(l->tree);
        if (rc == -EAGAIN)
            return NK_TASK_MORE;
        if (rc <= 0)
            return rc < 0 ? nk_place_fail_in(&l->place, e.path, -rc, &t->err) : 0;
        if (e.leaving)
            continue;
        if (l->count == l->limit)
            return end_page(l);
        if (tell(l, &e) < 0)
            return nk_fail(&t->err, NK_OVERLOADED, "no memory for the list");
    }
    return NK_TASK_MORE;
}

void nk_listing_fini(struct nk_listing *l)
{
    nk_place_fini(&l->place);
    nk_walk_free(l->tree);
    l->tree = NULL;
    free(l->path);
    free(l->after);
    free(l->next);
    free(l->last);
    l->path = l->after = l->next = l->last = NULL;
}
