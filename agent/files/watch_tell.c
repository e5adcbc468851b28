#include "files/watch_tell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *nk_watch_tell_join(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);

    if (path)
        (void)snprintf(path, size, "%s%s%s", folder, *folder && *name ? "/" : "", name);
    return path;
}

/* From the top to the form of the request. */
static char *outside(const struct nk_watch_read *r, const char *path)
{
    bool plain = strcmp(r->place.path, ".") == 0 && *path;

    return nk_watch_tell_join(plain ? "" : r->place.path, path);
}

void nk_watch_tell(struct nk_watch_read *r, struct nk_watch_event event)
{
    char *path = event.path ? outside(r, event.path) : NULL;
    char *to = event.to ? outside(r, event.to) : NULL;

    if ((event.path && !path) || (event.to && !to))
        event.kind = NK_WATCH_OVERFLOW;
    event.path = path;
    event.to = to;
    if (!r->tell(r->ctx, &event))
        r->full = true;
    free(path);
    free(to);
}

void nk_watch_tell_overflow(struct nk_watch_read *r)
{
    nk_watch_tell(r, (struct nk_watch_event){.kind = NK_WATCH_OVERFLOW});
}
