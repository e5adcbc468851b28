#include "files/watch_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "files/entry.h"
#include "files/temp.h"
#include "files/watch_tell.h"

#define MASK                                                                                       \
    (IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO |                 \
     IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)
#define DIR_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define FOUND_MAX (64 * 1024) /* of names that were told by a walk */

/* 0, 1: it was not watched before; -errno. `fd` is borrowed. */
static int add_open(struct nk_watch_read *r, int fd, const char *path)
{
    char proc[40];
    bool known;
    int wd, rc;

    (void)snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    wd = inotify_add_watch(r->inotify, proc, MASK);
    if (wd < 0)
        return -errno;
    known = nk_watched_find(&r->folders, wd) != NULL;
    /* Its name is what events say, in their order; but of what was lost none will say anything. */
    if (known && r->walk_kind != NK_WATCH_WALK_AGAIN) {
        nk_watched_meet(&r->folders, wd, path);
        return 0;
    }
    rc = !known && r->folders.live >= NK_WATCH_FOLDERS ? -ENOSPC
                                                       : nk_watched_add(&r->folders, wd, path);
    if (rc < 0 && !known)
        (void)inotify_rm_watch(r->inotify, wd);
    return rc < 0 ? rc : !known;
}

static int add_path(struct nk_watch_read *r, const char *path)
{
    nk_auto_fd int fd = nk_place_enter(r->top, path, strlen(path));

    return fd < 0 ? fd : add_open(r, fd, path);
}

static int add_entry(struct nk_watch_read *r, const struct nk_walk_entry *e, const char *path)
{
    nk_auto_fd int fd = openat(e->dir, e->name, DIR_FLAGS);

    return fd < 0 ? -errno : add_open(r, fd, path);
}

int nk_watch_walk_add(struct nk_watch_read *r, const char *path)
{
    int rc = add_path(r, path);

    return rc < 0 ? rc : 0;
}

static bool is_gone(int rc)
{
    return rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP || rc == -EACCES;
}

/* Whether it was not watched before, and is now. */
static bool settle_later(struct nk_watch_read *r, int rc)
{
    if (is_gone(rc))
        r->missed = true;
    if (rc >= 0 || is_gone(rc))
        return rc > 0;
    r->crowded = r->folders.live;
    if (!r->limited)
        nk_watch_tell_overflow(r);
    r->limited = true;
    return false;
}

void nk_watch_walk_add_later(struct nk_watch_read *r, const char *path)
{
    (void)settle_later(r, add_path(r, path));
}

int nk_watch_walk_begin(struct nk_watch_read *r, const char *path, enum nk_watch_walk kind)
{
    nk_auto_fd int dir = nk_place_enter(r->top, path, strlen(path));
    int fd = dir < 0 ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct nk_walk_options options = {.tolerant = true, .path_max = NK_PLACE_PATH_MAX};

    if (fd < 0)
        return dir < 0 || is_gone(-errno) ? 0 : -errno;
    r->walk_kind = kind;
    r->folders.round += kind == NK_WATCH_WALK_AGAIN;
    r->walk_at = strdup(path);
    if (!r->walk_at) {
        (void)close(fd);
        return -ENOMEM;
    }
    return nk_walk_new(fd, &options, &r->walk);
}

void nk_watch_walk_end(struct nk_watch_read *r)
{
    nk_walk_free(r->walk);
    r->walk = NULL;
    free(r->walk_at);
    r->walk_at = NULL;
    free(r->fresh);
    r->fresh = NULL;
    r->walk_kind = NK_WATCH_WALK_FIRST;
}

static void remember_found(struct nk_watch_read *r, const char *path)
{
    size_t len = strlen(path) + 1;
    char *found;

    if (r->found_len + len > FOUND_MAX)
        return;
    found = realloc(r->found, r->found_len + len);
    if (!found)
        return;
    memcpy(found + r->found_len, path, len);
    r->found = found;
    r->found_len += len;
}

bool nk_watch_walk_has_told(const struct nk_watch_read *r, const char *path)
{
    for (size_t at = 0; at < r->found_len; at += strlen(r->found + at) + 1) {
        if (strcmp(r->found + at, path) == 0)
            return true;
    }
    return false;
}

static bool is_in(const char *path, const char *folder)
{
    size_t len = folder ? strlen(folder) : 0;

    return folder && strncmp(path, folder, len) == 0 && path[len] == '/';
}

/* No path begins with a slash. */
void nk_watch_walk_untell(struct nk_watch_read *r, const char *path)
{
    for (size_t at = 0; at < r->found_len; at += strlen(r->found + at) + 1) {
        if (strcmp(r->found + at, path) == 0 || is_in(r->found + at, path))
            r->found[at] = '/';
    }
}

static void tell_created(struct nk_watch_read *r, const struct nk_walk_entry *e, const char *path)
{
    if (nk_temp_is(e->name) || nk_watch_walk_has_told(r, path))
        return;
    remember_found(r, path);
    nk_watch_tell(r, (struct nk_watch_event){.kind = NK_WATCH_CREATED,
                                             .path = path,
                                             .type = nk_entry_type(e->st.st_mode)});
}

static int visit_told(struct nk_watch_read *r, const struct nk_walk_entry *e, char *path)
{
    bool is_new = r->walk_kind == NK_WATCH_WALK_NEW || is_in(path, r->fresh);
    bool came = false;

    if (is_new)
        tell_created(r, e, path);
    if (S_ISDIR(e->st.st_mode))
        came = settle_later(r, add_entry(r, e, path));
    if (!came || is_new)
        return 0;
    tell_created(r, e, path);
    free(r->fresh);
    r->fresh = strdup(path);
    return r->fresh ? 0 : -ENOMEM;
}

/* A folder that is watched already gets the name that it has by now. */
static int visit_silent(struct nk_watch_read *r, const struct nk_walk_entry *e, const char *path)
{
    int rc = S_ISDIR(e->st.st_mode) ? add_entry(r, e, path) : 0;

    if (rc == -ENOSPC && r->walk_kind == NK_WATCH_WALK_AGAIN)
        r->crowded = r->folders.live;
    else if (rc < 0 && !is_gone(rc))
        return rc;
    return 0;
}

static int visit(struct nk_watch_read *r, const struct nk_walk_entry *e)
{
    char *path = nk_watch_tell_join(r->walk_at, e->path);
    bool told = r->walk_kind == NK_WATCH_WALK_NEW || r->walk_kind == NK_WATCH_WALK_FRESH;
    int rc = -ENOMEM;

    if (path)
        rc = told ? visit_told(r, e, path) : visit_silent(r, e, path);
    free(path);
    return rc;
}

/* Where the end of a folder was among what was lost, its place is kept for nothing. One that was
 * moved while we looked is still there, under the name that an event to come will change. */
static void drop_lost(struct nk_watch_read *r)
{
    for (size_t i = 0; i < r->folders.count; i++) {
        const struct nk_watched_folder *f = &r->folders.item[i];
        nk_auto_fd int fd = -1;

        if (!f->path || f->round == r->folders.round)
            continue;
        fd = nk_place_enter(r->top, f->path, strlen(f->path));
        if (fd >= 0)
            continue;
        (void)inotify_rm_watch(r->inotify, f->wd);
        nk_watched_drop(&r->folders, f->wd);
    }
}

static void finish(struct nk_watch_read *r)
{
    bool again = r->walk_kind == NK_WATCH_WALK_AGAIN;

    nk_watch_walk_end(r);
    if (!again)
        return;
    drop_lost(r);
    nk_watch_tell_overflow(r);
}

int nk_watch_walk_go(struct nk_watch_read *r, struct nk_task *t)
{
    struct nk_walk_entry e;

    while (!nk_task_due(t) && !r->full) {
        int rc = nk_walk_next(r->walk, t->until_ns, &e);

        if (rc == -EAGAIN)
            return NK_TASK_MORE;
        if (rc == 0) {
            finish(r);
            return 0;
        }
        if (rc > 0)
            rc = e.leaving ? 0 : visit(r, &e);
        if (rc == -ENOSPC)
            return nk_fail(&t->err, NK_OVERLOADED, "%s: more folders than can be watched",
                           r->place.path);
        if (rc < 0)
            return nk_place_fail(&r->place, -rc, &t->err);
    }
    return r->full ? 0 : NK_TASK_MORE;
}

void nk_watch_walk_forget(struct nk_watch_read *r, const char *path)
{
    size_t at = 0;

    for (int wd; (wd = nk_watched_leave(&r->folders, path, &at)) >= 0;)
        (void)inotify_rm_watch(r->inotify, wd);
}
