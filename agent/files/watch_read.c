#include "files/watch_read.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "files/entry.h"
#include "files/temp.h"
#include "files/watch_tell.h"
#include "files/watch_walk.h"

#define PAIR_MS 10 /* the halves of a move come one right after the other */
#define SPARE 1024 /* so many must have gone before those are looked for that were left out */

static bool stat_at(const struct nk_watch_read *r, const char *folder, const char *name,
                    struct stat *out)
{
    nk_auto_fd int dir = nk_place_enter(r->top, folder, strlen(folder));

    return dir >= 0 && fstatat(dir, name, out, AT_SYMLINK_NOFOLLOW) == 0;
}

static const char *type_at(const struct nk_watch_read *r, const char *folder, const char *name)
{
    struct stat st;

    /* Gone by now: most things are files. */
    return stat_at(r, folder, name, &st) ? nk_entry_type(st.st_mode) : "file";
}

/* What is written to a file without a name (O_TMPFILE) is told under `#` and its inode's number. */
static bool is_nameless(const struct nk_watch_read *r, const char *folder,
                        const struct inotify_event *e)
{
    size_t digits = *e->name == '#' ? strspn(e->name + 1, "0123456789") : 0;
    struct stat st;

    return digits > 0 && e->name[1 + digits] == '\0' && (e->mask & (IN_MODIFY | IN_ATTRIB)) &&
           !stat_at(r, folder, e->name, &st);
}

static void forget_move(struct nk_watch_read *r)
{
    if (r->moved)
        nk_watch_walk_untell(r, r->moved);
    free(r->moved);
    r->moved = NULL;
}

/* The first half of a move whose second did not come: it left what is watched. */
static void settle_move(struct nk_watch_read *r)
{
    if (r->moved && r->moved_folder)
        nk_watch_walk_forget(r, r->moved);
    if (r->moved && !r->moved_temp)
        nk_watch_tell(r, (struct nk_watch_event){.kind = NK_WATCH_REMOVED,
                                                 .path = r->moved,
                                                 .type = r->moved_folder ? "dir" : "file"});
    forget_move(r);
}

static int appeared(struct nk_watch_read *r, const char *folder, const char *name, bool is_dir)
{
    char *path = nk_watch_tell_join(folder, name);
    int rc = 0;

    if (!path)
        return -ENOMEM;
    if (!nk_watch_walk_has_told(r, path))
        nk_watch_tell(r,
                      (struct nk_watch_event){.kind = NK_WATCH_CREATED,
                                              .path = path,
                                              .type = is_dir ? "dir" : type_at(r, folder, name)});
    if (is_dir && r->recursive) {
        nk_watch_walk_add_later(r, path);
        rc = nk_watch_walk_begin(r, path, NK_WATCH_WALK_NEW);
    }
    free(path);
    return rc;
}

static void modified(struct nk_watch_read *r, const char *folder, const char *name, bool is_dir)
{
    char *path = nk_watch_tell_join(folder, name);

    if (path && r->last_modified && strcmp(path, r->last_modified) == 0) {
        free(path);
        return;
    }
    nk_watch_tell(r, (struct nk_watch_event){.kind = path ? NK_WATCH_MODIFIED : NK_WATCH_OVERFLOW,
                                             .path = path,
                                             .type = is_dir ? "dir" : type_at(r, folder, name)});
    free(r->last_modified);
    r->last_modified = path;
}

/* What gets its name when it is complete replaces what had it, or is a folder. */
static int settled(struct nk_watch_read *r, const char *folder, const char *name, bool is_dir)
{
    if (is_dir)
        return appeared(r, folder, name, true);
    modified(r, folder, name, false);
    return 0;
}

/* It may have been made, and things in it, too short before to be found under the old name. */
static int look_into_moved(struct nk_watch_read *r, const char *path)
{
    bool known = nk_watched_below(&r->folders, path) >= 0;

    if (known && !r->missed)
        return 0;
    nk_watch_walk_add_later(r, path);
    return nk_watch_walk_begin(r, path, known ? NK_WATCH_WALK_FRESH : NK_WATCH_WALK_NEW);
}

static int arrived(struct nk_watch_read *r, const char *folder, const struct inotify_event *e)
{
    bool is_dir = e->mask & IN_ISDIR;
    char *to;
    int rc;

    if (!r->moved)
        return appeared(r, folder, e->name, is_dir);
    if (r->moved_temp) {
        forget_move(r);
        return settled(r, folder, e->name, is_dir);
    }
    to = nk_watch_tell_join(folder, e->name);
    if (!to)
        return -ENOMEM;
    rc = is_dir ? nk_watched_move(&r->folders, r->moved, to) : 0;
    nk_watch_tell(r, (struct nk_watch_event){.kind = NK_WATCH_MOVED,
                                             .path = r->moved,
                                             .to = to,
                                             .type = is_dir ? "dir" : type_at(r, folder, e->name)});
    forget_move(r);
    if (rc == 0 && is_dir && r->recursive)
        rc = look_into_moved(r, to);
    free(to);
    return rc;
}

static void removed(struct nk_watch_read *r, const char *folder, const char *name, bool is_dir)
{
    char *path = nk_watch_tell_join(folder, name);

    nk_watch_tell(r, (struct nk_watch_event){.kind = path ? NK_WATCH_REMOVED : NK_WATCH_OVERFLOW,
                                             .path = path,
                                             .type = is_dir ? "dir" : "file"});
    if (path)
        nk_watch_walk_untell(r, path);
    free(path);
}

static void end(struct nk_watch_read *r)
{
    if (!r->ended)
        removed(r, "", "", true);
    r->ended = true;
}

/* Of a folder itself; only the top's own end is news, the others' are told by their parents. */
static void about_itself(struct nk_watch_read *r, const char *folder, uint32_t mask)
{
    if (*folder == '\0' && (mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)))
        end(r);
}

/* The descriptor that we hold keeps a removed folder from telling its own end. */
static void watch_parent(struct nk_watch_read *r)
{
    char proc[40];

    (void)snprintf(proc, sizeof proc, "/proc/self/fd/%d", r->place.dir);
    if (!r->place.is_root)
        r->parent = inotify_add_watch(r->inotify, proc, IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR);
}

static int handle_named(struct nk_watch_read *r, const char *folder, const struct inotify_event *e)
{
    bool is_dir = e->mask & IN_ISDIR;

    if (e->mask & IN_MOVED_FROM) {
        r->moved = nk_watch_tell_join(folder, e->name);
        r->moved_cookie = e->cookie;
        r->moved_folder = is_dir;
        r->moved_temp = nk_temp_is(e->name);
        return r->moved ? 0 : -ENOMEM;
    }
    if (e->mask & IN_MOVED_TO)
        return nk_temp_is(e->name) ? 0 : arrived(r, folder, e);
    if (nk_temp_is(e->name) || is_nameless(r, folder, e))
        return 0;
    if (e->mask & IN_CREATE)
        return appeared(r, folder, e->name, is_dir);
    if (e->mask & IN_DELETE)
        removed(r, folder, e->name, is_dir);
    else if (e->mask & (IN_MODIFY | IN_ATTRIB))
        modified(r, folder, e->name, is_dir);
    return 0;
}

static int dispatch(struct nk_watch_read *r, const char *folder, const struct inotify_event *e)
{
    if (e->len > 0)
        return handle_named(r, folder, e);
    about_itself(r, folder, e->mask);
    return 0;
}

/* What was made or renamed meanwhile is not watched, or under a wrong name. It is told when that is
 * mended: who lists then misses nothing that comes after. */
static int overflowed(struct nk_watch_read *r)
{
    r->crowded = 0;
    if (r->recursive)
        return nk_watch_walk_begin(r, "", NK_WATCH_WALK_AGAIN);
    nk_watch_tell_overflow(r);
    return 0;
}

static int handle(struct nk_watch_read *r, const struct inotify_event *e)
{
    const char *found;
    char *folder;
    int rc = 0;

    if (r->moved && !((e->mask & IN_MOVED_TO) && e->cookie == r->moved_cookie))
        settle_move(r);
    if (!(e->mask & (IN_MODIFY | IN_ATTRIB))) {
        free(r->last_modified);
        r->last_modified = NULL;
    }
    if (e->wd == r->parent && e->len > 0 && strcmp(e->name, r->place.name) == 0)
        end(r);
    if (e->mask & IN_Q_OVERFLOW)
        return overflowed(r);
    if (e->mask & IN_IGNORED)
        nk_watched_drop(&r->folders, e->wd);
    found = nk_watched_find(&r->folders, e->wd);
    if (!found)
        return 0;
    folder = strdup(found); /* the table may change meanwhile */
    rc = folder ? dispatch(r, folder, e) : -ENOMEM;
    free(folder);
    return rc;
}

/* 1: there are events in the buffer, 0: none now. */
static int fill(struct nk_watch_read *r)
{
    struct pollfd poll_fd = {.fd = r->inotify, .events = POLLIN};
    ssize_t n;

    if (r->at < r->len)
        return 1;
    if (r->moved)
        (void)poll(&poll_fd, 1, PAIR_MS);
    n = read(r->inotify, r->buf, sizeof r->buf);
    r->at = 0;
    r->len = n > 0 ? (size_t)n : 0;
    if (n > 0)
        return 1;
    settle_move(r);
    r->missed = r->limited = false;
    r->found_len = 0;
    free(r->last_modified);
    r->last_modified = NULL;
    return 0;
}

static bool has_room_again(const struct nk_watch_read *r)
{
    return r->crowded > 0 && r->folders.live + SPARE <= r->crowded;
}

int nk_watch_read_go(struct nk_watch_read *r, struct nk_task *t)
{
    while (!r->full && !r->ended) {
        const struct inotify_event *e;
        int rc;

        if (r->walk) {
            rc = nk_watch_walk_go(r, t);
            if (rc != 0)
                return rc;
            continue;
        }
        if (nk_task_due(t))
            return NK_TASK_MORE;
        if (fill(r) > 0) {
            e = (const struct inotify_event *)(const void *)(r->buf + r->at);
            r->at += sizeof *e + e->len;
            rc = handle(r, e);
        } else if (has_room_again(r)) {
            rc = overflowed(r);
        } else {
            return 0;
        }
        if (rc < 0)
            return nk_place_fail(&r->place, -rc, &t->err);
    }
    return 0;
}

int nk_watch_read_open(struct nk_watch_read *r, const struct nk_roots *roots, const char *path,
                       size_t len, struct nk_err *err)
{
    int rc;

    if (nk_path_resolve(roots, path, len, NK_PATH_FOLLOW, &r->place, err) < 0)
        return -1;
    r->top = nk_place_open_dir(&r->place, O_PATH, err);
    if (r->top < 0)
        return -1;
    r->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (r->inotify < 0)
        return nk_place_fail(&r->place, errno, err);
    rc = nk_watch_walk_add(r, "");
    if (rc == -ENOENT)
        return nk_fail(err, NK_NOT_SUPPORTED, "watching needs /proc, which is not mounted");
    if (rc == -ENOSPC)
        return nk_fail(err, NK_OVERLOADED, "%s: the kernel watches no more folders", r->place.path);
    watch_parent(r);
    if (rc == 0 && r->recursive)
        rc = nk_watch_walk_begin(r, "", NK_WATCH_WALK_FIRST);
    return rc < 0 ? nk_place_fail(&r->place, -rc, err) : 0;
}

void nk_watch_read_fini(struct nk_watch_read *r)
{
    nk_watch_walk_end(r);
    nk_close_fd(&r->top);
    nk_close_fd(&r->inotify);
    nk_place_fini(&r->place);
    nk_watched_fini(&r->folders);
    free(r->moved);
    free(r->last_modified);
    free(r->found);
}
