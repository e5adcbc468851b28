#include "files/path.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"
#include "process/probe.h"

#define REST_MAX (2 * NK_PLACE_PATH_MAX + 2)
#define STEPS_MAX 65536 /* folders entered for one path, by links and `..` over and over */
#define DIR_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct walk {
    const struct nk_roots *roots;
    const struct nk_root *root; /* the one that `dir` lies in */
    unsigned flags;
    unsigned links;
    unsigned steps;
    int dir;                          /* owned */
    char done[NK_PLACE_PATH_MAX + 1]; /* the names that lead from the root to `dir` */
    size_t done_len;
    char rest[REST_MAX + 1]; /* what is to be walked stands at its end, from `at` */
    size_t at;
    size_t own;   /* from here on it is the client's text, before it that of links */
    bool leap;    /* openat2 has not been tried from here */
    size_t floor; /* of the answer's path: what is before it has no parent in the text */
    size_t path_len;
    struct nk_place *place; /* borrowed: the result */
};

static int not_writable(const struct nk_place *place, struct nk_err *err)
{
    return nk_fail(err, NK_FORBIDDEN, "%s: is not writable here", place->path);
}

static int fail(const struct walk *w, int sys, struct nk_err *err)
{
    if (sys == ENOENT && (w->flags & NK_PATH_WRITE) && !w->root->writable)
        return not_writable(w->place, err);
    return nk_fail_sys(err, sys, "%s", w->path_len ? w->place->path : ".");
}

static size_t skip_nothing(const char *s, size_t at)
{
    for (;;) {
        if (s[at] == '/')
            at++;
        else if (s[at] == '.' && (s[at + 1] == '/' || s[at + 1] == '\0'))
            at++;
        else
            return at;
    }
}

static bool is_up(const char *s, size_t len)
{
    return len == 2 && s[0] == '.' && s[1] == '.';
}

/* Text of a link, or names to walk anew, in front of what is left. */
static int prepend(struct walk *w, const char *text, size_t len)
{
    if (len + 1 > w->at)
        return -ENAMETOOLONG;
    if (w->own < w->at)
        w->own = w->at;
    w->rest[--w->at] = '/';
    w->at -= len;
    memcpy(w->rest + w->at, text, len);
    w->leap = true;
    return 0;
}

static int enter_root(struct walk *w, const struct nk_root *root)
{
    int fd = nk_roots_enter(root);

    if (fd < 0)
        return fd;
    nk_close_fd(&w->dir);
    w->dir = fd;
    w->root = root;
    w->done_len = 0;
    w->leap = true;
    return 0;
}

/* A link names an absolute path: it must lie in a root by itself. */
static int restart(struct walk *w, const char *target, struct nk_err *err)
{
    const char *rest = NULL;
    const struct nk_root *root = nk_roots_find(w->roots, target, &rest);
    int rc;

    if (!root)
        return nk_fail(err, NK_FORBIDDEN, "%s: a link leads out of the sandbox's folders",
                       w->place->path);
    rc = prepend(w, rest, strlen(rest));
    if (rc == 0)
        rc = enter_root(w, root);
    return rc < 0 ? fail(w, -rc, err) : 0;
}

static int follow(struct walk *w, const char *target, size_t len, struct nk_err *err)
{
    int rc;

    if (++w->links > NK_PATH_LINKS_MAX)
        return fail(w, ELOOP, err);
    if (target[0] == '/')
        return restart(w, target, err);
    rc = prepend(w, target, len);
    return rc < 0 ? fail(w, -rc, err) : 0;
}

/* `..` in a link goes above the root: perhaps into another one. */
static int leave(struct walk *w, struct nk_err *err)
{
    char target[NK_PLACE_PATH_MAX + REST_MAX + 2];
    const char *slash = strrchr(w->root->path, '/');
    size_t up = slash ? (size_t)(slash - w->root->path) : 0;
    size_t len = w->own > w->at ? w->own - w->at : 0;

    if (up >= NK_PLACE_PATH_MAX)
        return fail(w, ENAMETOOLONG, err);
    memcpy(target, w->root->path, up);
    target[up] = '/';
    memcpy(target + up + 1, w->rest + w->at, len);
    target[up + 1 + len] = '\0';
    w->at += len;
    return restart(w, target, err);
}

static void text_up(struct walk *w)
{
    char *path = w->place->path;

    if (w->path_len > w->floor) {
        while (w->path_len > w->floor && path[w->path_len - 1] != '/')
            w->path_len--;
        if (w->path_len > w->floor)
            w->path_len--;
    } else {
        if (w->path_len > 0)
            path[w->path_len++] = '/';
        path[w->path_len++] = '.';
        path[w->path_len++] = '.';
        w->floor = w->path_len;
    }
    path[w->path_len] = '\0';
}

/* The answer's path is never longer than the client's. */
static void text_add(struct walk *w, const char *name, size_t len)
{
    char *path = w->place->path;

    if (w->path_len > 0 || w->place->absolute)
        path[w->path_len++] = '/';
    assert(w->path_len + len <= NK_PLACE_PATH_MAX);
    memcpy(path + w->path_len, name, len);
    w->path_len += len;
    path[w->path_len] = '\0';
}

static int walk_anew(struct walk *w)
{
    char names[NK_PLACE_PATH_MAX + 1];
    size_t len = w->done_len;
    int rc;

    memcpy(names, w->done, len);
    rc = enter_root(w, w->root);
    if (rc < 0 || len == 0)
        return rc;
    return prepend(w, names, len);
}

static int go_up(struct walk *w, bool own, struct nk_err *err)
{
    int rc;

    /* The client's own text does not leave; but a link before it may have led to a root. */
    if (w->done_len == 0 && own)
        return nk_fail(err, NK_BAD_PATH, "%s/..: leads out of the folder it begins in",
                       w->path_len ? w->place->path : ".");
    if (w->done_len == 0)
        return leave(w, err);
    while (w->done_len > 0 && w->done[--w->done_len] != '/')
        continue;
    if (own)
        text_up(w);
    w->place->made = 0;
    rc = walk_anew(w);
    return rc < 0 ? fail(w, -rc, err) : 0;
}

static int push(struct walk *w, const char *name, size_t len)
{
    if (w->done_len + len + 1 > NK_PLACE_PATH_MAX)
        return -ENAMETOOLONG;
    if (w->done_len > 0)
        w->done[w->done_len++] = '/';
    memcpy(w->done + w->done_len, name, len);
    w->done_len += len;
    return 0;
}

/* How much of the front is plain names of folders: neither `..` nor the last component. */
static size_t leap_span(const char *rest)
{
    size_t span = 0;
    size_t end = 0;

    for (size_t at = skip_nothing(rest, 0); rest[at] != '\0'; at = skip_nothing(rest, end)) {
        size_t len = strcspn(rest + at, "/");

        span = end;
        if (is_up(rest + at, len))
            return span;
        end = at + len;
    }
    return span;
}

static int commit_leap(struct walk *w, size_t span)
{
    size_t end = w->at + span;

    for (w->at = skip_nothing(w->rest, w->at); w->at < end; w->at = skip_nothing(w->rest, w->at)) {
        size_t len = strcspn(w->rest + w->at, "/");

        if (push(w, w->rest + w->at, len) < 0)
            return -ENAMETOOLONG;
        if (w->at >= w->own)
            text_add(w, w->rest + w->at, len);
        w->at += len;
    }
    return 0;
}

/* The kernel walks as far as there is no link; whatever it does not like is walked by hand. */
static int leap(struct walk *w)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    char names[REST_MAX + 1];
    size_t span;
    int fd;

    w->leap = false;
    if (!nk_has(w->roots->kernel, NK_MECH_OPENAT2))
        return 0;
    span = leap_span(w->rest + w->at);
    if (span == 0)
        return 0;
    memcpy(names, w->rest + w->at, span);
    names[span] = '\0';
    fd = (int)syscall(SYS_openat2, w->dir, names, &how, sizeof how);
    if (fd < 0)
        return 0;
    nk_close_fd(&w->dir);
    w->dir = fd;
    return commit_leap(w, span);
}

static int open_folder(struct walk *w, const char *name, bool own)
{
    int fd = openat(w->dir, name, DIR_FLAGS);

    if (fd >= 0 || errno != ENOENT || !own || !(w->flags & NK_PATH_PARENTS) || !w->root->writable)
        return fd < 0 ? -errno : fd;
    fd = nk_place_mkdir(w->dir, name, 0755);
    if (fd < 0 && fd != -EEXIST)
        return fd;
    w->place->made += fd == 0;
    fd = openat(w->dir, name, DIR_FLAGS);
    return fd < 0 ? -errno : fd;
}

static int enter(struct walk *w, const char *name, size_t len, bool own, struct nk_err *err)
{
    char target[NK_PLACE_PATH_MAX];
    int fd = open_folder(w, name, own);
    ssize_t n;

    if (own)
        text_add(w, name, len);
    if (fd == -ENOTDIR || fd == -ELOOP) {
        n = readlinkat(w->dir, name, target, sizeof target - 1);
        if (n < 0)
            return fail(w, ENOTDIR, err);
        target[n] = '\0';
        if (own)
            w->floor = w->path_len;
        return follow(w, target, (size_t)n, err);
    }
    if (fd < 0)
        return fail(w, -fd, err);
    nk_close_fd(&w->dir);
    w->dir = fd;
    return push(w, name, len) < 0 ? fail(w, ENAMETOOLONG, err) : 0;
}

/* The last component. 1: the walk goes on, through a link. */
static int finish(struct walk *w, const char *name, size_t len, bool own, struct nk_err *err)
{
    char target[NK_PLACE_PATH_MAX];
    ssize_t n = -1;

    if (own)
        text_add(w, name, len);
    if (w->flags & (NK_PATH_FOLLOW | NK_PATH_NO_LINK)) {
        n = readlinkat(w->dir, name, target, sizeof target - 1);
        if (n < 0 && errno != EINVAL && errno != ENOENT)
            return fail(w, errno, err);
    }
    if (n >= 0 && (w->flags & NK_PATH_NO_LINK))
        return nk_fail(err, NK_BAD_PATH, "%s: is a symbolic link", w->place->path);
    if (n >= 0) {
        target[n] = '\0';
        return follow(w, target, (size_t)n, err) < 0 ? -1 : 1;
    }
    memcpy(w->place->name, name, len + 1);
    return 0;
}

/* Nothing is left, but the place is `dir` itself: a root, or what is found by its last name. */
static int settle(struct walk *w, struct nk_err *err)
{
    int rc;

    if (w->done_len > 0) {
        rc = walk_anew(w);
        return rc < 0 ? fail(w, -rc, err) : 1;
    }
    memcpy(w->place->name, ".", 2);
    w->place->is_root = true;
    return 0;
}

/* One component. 1: there are more, 0: the place is found, -1 with err. */
static int step(struct walk *w, struct nk_err *err)
{
    char name[NK_PLACE_NAME_MAX + 1];
    size_t len;
    bool own;

    if (++w->steps > STEPS_MAX)
        return fail(w, ELOOP, err);
    if (w->leap && leap(w) < 0)
        return fail(w, ENAMETOOLONG, err);
    w->at = skip_nothing(w->rest, w->at);
    len = strcspn(w->rest + w->at, "/");
    own = w->at >= w->own;
    if (len == 0)
        return settle(w, err);
    if (len > NK_PLACE_NAME_MAX)
        return fail(w, ENAMETOOLONG, err);
    memcpy(name, w->rest + w->at, len);
    name[len] = '\0';
    w->at = skip_nothing(w->rest, w->at + len);
    if (is_up(name, len))
        return go_up(w, own, err) < 0 ? -1 : 1;
    if (w->rest[w->at] == '\0')
        return finish(w, name, len, own, err);
    return enter(w, name, len, own, err) < 0 ? -1 : 1;
}

/* What no file system need be asked for: `..` that leaves, whatever the names before it are, and
 * names that are too long. */
static int check_text(const char *path, const char *rest, struct nk_err *err)
{
    size_t depth = 0;

    for (size_t at = skip_nothing(rest, 0); rest[at] != '\0'; at = skip_nothing(rest, at)) {
        size_t len = strcspn(rest + at, "/");

        if (len > NK_PLACE_NAME_MAX)
            return nk_fail(err, NK_BAD_PATH, "a name of %zu bytes is too long", len);
        if (is_up(rest + at, len) && depth-- == 0)
            return nk_fail(err, NK_BAD_PATH, "%s: leads out of the folder it begins in", path);
        depth += !is_up(rest + at, len);
        at += len;
    }
    return 0;
}

static int begin(struct walk *w, const char *path, size_t len, struct nk_err *err)
{
    char text[NK_PLACE_PATH_MAX + 1];
    const struct nk_root *root = &w->roots->item[0];
    const char *rest = text;
    int rc;

    if (len > NK_PLACE_PATH_MAX)
        return nk_fail(err, NK_BAD_PATH, "a path of %zu bytes is too long", len);
    if (memchr(path, '\0', len))
        return nk_fail(err, NK_BAD_PATH, "a path must not hold a NUL byte");
    memcpy(text, path, len);
    text[len] = '\0';
    w->place->absolute = text[0] == '/';
    w->place->slash = len > 0 && text[len - 1] == '/';
    if (w->place->absolute)
        root = nk_roots_find(w->roots, text, &rest);
    if (!root)
        return nk_fail(err, NK_FORBIDDEN, "%s: is outside of the sandbox's folders", text);
    if (check_text(text, rest, err) < 0)
        return -1;
    if (w->place->absolute) {
        memcpy(w->place->path, root->path, root->len + 1);
        w->floor = w->path_len = root->len;
    }
    w->at = REST_MAX - strlen(rest);
    w->own = w->at;
    memcpy(w->rest + w->at, rest, strlen(rest) + 1);
    rc = enter_root(w, root);
    return rc < 0 ? fail(w, -rc, err) : 0;
}

int nk_path_resolve(const struct nk_roots *roots, const char *path, size_t len, unsigned flags,
                    struct nk_place *out, struct nk_err *err)
{
    struct walk w = {.roots = roots, .flags = flags, .dir = -1, .place = out};
    int rc;

    out->dir = -1;
    out->is_root = false;
    out->made = 0;
    out->name[0] = '\0';
    out->path[0] = '\0';
    rc = begin(&w, path, len, err);
    while (rc >= 0) {
        rc = step(&w, err);
        if (rc <= 0)
            break;
    }
    if (rc == 0 && (flags & NK_PATH_WRITE) && !w.root->writable)
        rc = not_writable(out, err);
    if (rc < 0) {
        nk_close_fd(&w.dir);
        return -1;
    }
    if (w.path_len == 0)
        memcpy(out->path, out->absolute ? "/" : ".", 2);
    out->dir = w.dir;
    return 0;
}

void nk_path_unmake(const struct nk_roots *roots, struct nk_place *place)
{
    char path[NK_PLACE_PATH_MAX + 1];
    struct nk_place folder;
    char *slash;
    bool removed = true;

    memcpy(path, place->path, sizeof path);
    for (; removed && place->made > 0; place->made--) {
        slash = strrchr(path, '/');
        if (!slash || slash == path)
            return;
        *slash = '\0';
        if (nk_path_resolve(roots, path, strlen(path), NK_PATH_WRITE, &folder, NULL) < 0)
            return;
        removed = unlinkat(folder.dir, folder.name, AT_REMOVEDIR) == 0;
        nk_place_fini(&folder);
    }
}
