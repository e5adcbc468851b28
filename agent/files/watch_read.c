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

#define MASK                                                                                       \
    (IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO |                 \
     IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)
#define PAIR_MS 10            /* the halves of a move come one right after the other */
#define FOUND_MAX (64 * 1024) /* of names that were told by a walk */

static char *join(const char *folder, const char *name)
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
    return join(strcmp(r->place.path, ".") == 0 && *path ? "" : r->place.path, path);
}

static void tell(struct nk_watch_read *r, struct nk_watch_event event)
{
    char *path = event.path ? outside(r, event.path) : NULL;
    char *to = event.to ? outside(r, event.to) : NULL;

    /* Without memory for a path, the taker must look for itself. */
    if ((event.path && !path) || (event.to && !to))
        event.kind = NK_WATCH_OVERFLOW;
    event.path = path;
    event.to = to;
    if (!r->tell(r->ctx, &event))
        r->full = true;
    free(path);
    free(to);
}

static void tell_overflow(struct nk_watch_read *r)
{
    tell(r, (struct nk_watch_event){.kind = NK_WATCH_OVERFLOW});
}

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

/* 0: watched, or not to be; -errno. */
static int add_folder(struct nk_watch_read *r, const char *path)
{
    nk_auto_fd int fd = nk_place_enter(r->top, path, strlen(path));
    char proc[40];
    int wd;

    if (fd < 0)
        return fd;
    if (r->folders.live >= NK_WATCH_FOLDERS)
        return -ENOSPC;
    (void)snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    wd = inotify_add_watch(r->inotify, proc, MASK);
    return wd < 0 ? -errno : nk_watched_add(&r->folders, wd, path);
}

static bool is_gone(int rc)
{
    return rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP || rc == -EACCES;
}

/* One that cannot be watched any more makes the picture incomplete; that is told once. */
static void add_later(struct nk_watch_read *r, const char *path)
{
    int rc = add_folder(r, path);

    if (rc == 0 || is_gone(rc) || r->limited)
        return;
    r->limited = true;
    tell_overflow(r);
}

/* `path` is watched; what is in it follows. */
static int begin_walk(struct nk_watch_read *r, const char *path, bool silent)
{
    nk_auto_fd int dir = nk_place_enter(r->top, path, strlen(path));
    int fd = dir < 0 ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct nk_walk_options options = {.tolerant = true, .path_max = NK_PLACE_PATH_MAX};

    if (fd < 0)
        return is_gone(-errno) || dir < 0 ? 0 : -errno;
    r->silent = silent;
    r->walk_at = strdup(path);
    if (!r->walk_at) {
        (void)close(fd);
        return -ENOMEM;
    }
    return nk_walk_new(fd, &options, &r->walk);
}

static void end_walk(struct nk_watch_read *r)
{
    nk_walk_free(r->walk);
    r->walk = NULL;
    free(r->walk_at);
    r->walk_at = NULL;
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

static bool was_found(const struct nk_watch_read *r, const char *path)
{
    for (size_t at = 0; at < r->found_len; at += strlen(r->found + at) + 1) {
        if (strcmp(r->found + at, path) == 0)
            return true;
    }
    return false;
}

/* A folder on the way is watched before it is read. */
static int visit(struct nk_watch_read *r, const struct nk_walk_entry *e)
{
    char *path = join(r->walk_at, e->path);
    int rc = 0;

    if (!path)
        return -ENOMEM;
    if (!r->silent && !nk_temp_is(e->name)) {
        remember_found(r, path);
        tell(r, (struct nk_watch_event){
                    .kind = NK_WATCH_CREATED, .path = path, .type = nk_entry_type(e->st.st_mode)});
    }
    if (S_ISDIR(e->st.st_mode) && !r->silent)
        add_later(r, path);
    if (S_ISDIR(e->st.st_mode) && r->silent)
        rc = add_folder(r, path);
    free(path);
    return is_gone(rc) ? 0 : rc;
}

static int go_walk(struct nk_watch_read *r, struct nk_task *t)
{
    struct nk_walk_entry e;

    while (!nk_task_due(t) && !r->full) {
        int rc = nk_walk_next(r->walk, t->until_ns, &e);

        if (rc == -EAGAIN)
            return NK_TASK_MORE;
        if (rc == 0) {
            end_walk(r);
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

static void unwatch(struct nk_watch_read *r, const char *path)
{
    for (int wd; (wd = nk_watched_below(&r->folders, path)) >= 0;) {
        (void)inotify_rm_watch(r->inotify, wd);
        nk_watched_drop(&r->folders, wd);
    }
}

static void forget_move(struct nk_watch_read *r)
{
    free(r->moved);
    r->moved = NULL;
}

/* The first half of a move whose second did not come: it left what is watched. */
static void settle_move(struct nk_watch_read *r)
{
    if (r->moved && r->moved_folder)
        unwatch(r, r->moved);
    if (r->moved && !r->moved_temp)
        tell(r, (struct nk_watch_event){.kind = NK_WATCH_REMOVED,
                                        .path = r->moved,
                                        .type = r->moved_folder ? "dir" : "file"});
    forget_move(r);
}

static int appeared(struct nk_watch_read *r, const char *folder, const char *name, bool is_dir)
{
    char *path = join(folder, name);
    int rc = 0;

    if (!path)
        return -ENOMEM;
    if (!was_found(r, path))
        tell(r, (struct nk_watch_event){.kind = NK_WATCH_CREATED,
                                        .path = path,
                                        .type = is_dir ? "dir" : type_at(r, folder, name)});
    if (is_dir && r->recursive) {
        add_later(r, path);
        rc = begin_walk(r, path, false);
    }
    free(path);
    return rc;
}

static void modified(struct nk_watch_read *r, const char *folder, const char *name, bool is_dir)
{
    char *path = join(folder, name);

    if (path && r->last_modified && strcmp(path, r->last_modified) == 0) {
        free(path);
        return;
    }
    tell(r, (struct nk_watch_event){.kind = path ? NK_WATCH_MODIFIED : NK_WATCH_OVERFLOW,
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
    to = join(folder, e->name);
    if (!to)
        return -ENOMEM;
    rc = is_dir ? nk_watched_move(&r->folders, r->moved, to) : 0;
    tell(r, (struct nk_watch_event){.kind = NK_WATCH_MOVED,
                                    .path = r->moved,
                                    .to = to,
                                    .type = is_dir ? "dir" : type_at(r, folder, e->name)});
    free(to);
    forget_move(r);
    return rc;
}

static void removed(struct nk_watch_read *r, const char *folder, const char *name, bool is_dir)
{
    char *path = join(folder, name);

    tell(r, (struct nk_watch_event){.kind = path ? NK_WATCH_REMOVED : NK_WATCH_OVERFLOW,
                                    .path = path,
                                    .type = is_dir ? "dir" : "file"});
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
        r->moved = join(folder, e->name);
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
        tell_overflow(r);
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
    r->found_len = 0;
    free(r->last_modified);
    r->last_modified = NULL;
    return 0;
}

int nk_watch_read_go(struct nk_watch_read *r, struct nk_task *t)
{
    while (!r->full && !r->ended) {
        const struct inotify_event *e;
        int rc;

        if (r->walk) {
            rc = go_walk(r, t);
            if (rc != 0)
                return rc;
            continue;
        }
        if (nk_task_due(t))
            return NK_TASK_MORE;
        if (fill(r) == 0)
            return 0;
        e = (const struct inotify_event *)(const void *)(r->buf + r->at);
        r->at += sizeof *e + e->len;
        rc = handle(r, e);
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
    rc = add_folder(r, "");
    if (rc == -ENOENT)
        return nk_fail(err, NK_NOT_SUPPORTED, "watching needs /proc, which is not mounted");
    if (rc == -ENOSPC)
        return nk_fail(err, NK_OVERLOADED, "%s: the kernel watches no more folders", r->place.path);
    watch_parent(r);
    if (rc == 0 && r->recursive)
        rc = begin_walk(r, "", true);
    return rc < 0 ? nk_place_fail(&r->place, -rc, err) : 0;
}

void nk_watch_read_fini(struct nk_watch_read *r)
{
    end_walk(r);
    nk_close_fd(&r->top);
    nk_close_fd(&r->inotify);
    nk_place_fini(&r->place);
    nk_watched_fini(&r->folders);
    free(r->moved);
    free(r->last_modified);
    free(r->found);
}
