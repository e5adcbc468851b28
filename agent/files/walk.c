#include "files/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "files/names.h"
#include "files/place.h"

#define OPEN_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define HELD_MAX (8 * NK_NAMES_MAX) /* names over all levels, or twice what one may hold */
#define LEVELS_MAX 65536
#define FORCED_LEVELS 4096 /* what lies deeper is brought up */
#define LIFTS_MAX 65536

struct level {
    struct nk_names names;
    dev_t dev;
    ino_t ino;
    size_t path_len; /* of the folder's path */
    bool fresh;      /* has not been read */
};

struct nk_walk {
    struct nk_walk_options options;
    int top;              /* owned */
    int cur;              /* owned: the innermost level's */
    struct level *levels; /* owned */
    size_t depth;
    size_t cap;
    size_t held; /* names over all levels */
    char *path;  /* owned; ends in a NUL */
    size_t path_cap;
    char *after; /* owned: where to begin; `cursor` goes through it */
    const char *cursor;
    bool cut;    /* something has no path that is short enough */
    bool lifted; /* something was brought up to the top since it was read */
    unsigned lifts;
    struct nk_names_reader reader;
};

static struct level *inner(struct nk_walk *t)
{
    return &t->levels[t->depth - 1];
}

/* Where the new level begins, by what is left of the cursor. */
static int aim(struct nk_walk *t, struct nk_names *names)
{
    size_t len;

    if (!t->cursor)
        return 0;
    len = strcspn(t->cursor, "/");
    names->last.text = strndup(t->cursor, len);
    if (!names->last.text)
        return -ENOMEM;
    names->last.inner = names->inclusive = t->cursor[len] == '/';
    t->cursor = t->cursor[len] == '/' ? t->cursor + len + 1 : NULL;
    return 0;
}

static int reserve_level(struct nk_walk *t)
{
    size_t cap = t->cap ? 2 * t->cap : 16;
    struct level *levels;

    if (t->depth < t->cap)
        return 0;
    if (cap > (t->options.force ? FORCED_LEVELS : LEVELS_MAX))
        return -ENAMETOOLONG;
    levels = realloc(t->levels, cap * sizeof *levels);
    if (!levels)
        return -ENOMEM;
    t->levels = levels;
    t->cap = cap;
    return 0;
}

/* `fd` is taken, also on failure. */
static int push(struct nk_walk *t, int fd, size_t path_len)
{
    nk_auto_fd int dir = fd;
    struct level level = {.names = {.max = t->options.names_max, .nested = t->options.nested},
                          .path_len = path_len,
                          .fresh = true};
    struct stat st;
    int rc = reserve_level(t);

    if (rc == 0 && fstat(dir, &st) < 0)
        rc = -errno;
    if (rc == 0)
        rc = aim(t, &level.names);
    if (rc < 0)
        return rc;
    if (t->options.force && (st.st_mode & 0700) != 0700)
        (void)fchmod(dir, st.st_mode | 0700);
    level.dev = st.st_dev;
    level.ino = st.st_ino;
    t->levels[t->depth++] = level;
    nk_close_fd(&t->cur);
    t->cur = nk_take_fd(&dir);
    return 0;
}

int nk_walk_new(int dir, const struct nk_walk_options *options, struct nk_walk **out)
{
    struct nk_walk *t = calloc(1, sizeof *t);
    int rc = -ENOMEM;
    int fd;

    if (!t) {
        (void)close(dir);
        return -ENOMEM;
    }
    t->options = *options;
    t->top = dir;
    t->cur = -1;
    t->path = calloc(1, 512);
    t->path_cap = 512;
    if (options->after)
        t->after = strdup(options->after);
    t->cursor = t->after;
    fd = fcntl(dir, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        rc = -errno;
    else if (!t->path || (options->after && !t->after))
        (void)close(fd);
    else
        rc = push(t, fd, 0);
    if (rc == 0)
        *out = t;
    else
        nk_walk_free(t);
    return rc;
}

void nk_walk_free(struct nk_walk *t)
{
    if (!t)
        return;
    while (t->depth > 0)
        nk_names_fini(&t->levels[--t->depth].names);
    nk_close_fd(&t->top);
    nk_close_fd(&t->cur);
    free(t->levels);
    free(t->path);
    free(t->after);
    free(t);
}

static int set_path(struct nk_walk *t, const char *name, struct nk_walk_entry *out)
{
    size_t at = inner(t)->path_len;
    size_t len = strlen(name);
    size_t need = at + len + 2;

    if (need > t->path_cap) {
        char *path = realloc(t->path, 2 * need);

        if (!path)
            return -ENOMEM;
        t->path = path;
        t->path_cap = 2 * need;
    }
    if (at > 0)
        t->path[at++] = '/';
    memcpy(t->path + at, name, len + 1);
    out->dir = t->cur;
    out->name = name;
    out->path = t->path;
    out->path_len = at + len;
    out->leaving = false;
    return 0;
}

static bool is_level(int fd, const struct level *level)
{
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == level->dev && st.st_ino == level->ino;
}

static void leave_level(struct nk_walk *t)
{
    struct level *level = &t->levels[--t->depth];

    t->held -= level->names.count;
    nk_names_fini(&level->names);
}

/* From the top by names, as far as the folders are still the ones we came through. */
static void find_back(struct nk_walk *t)
{
    int fd = fcntl(t->top, F_DUPFD_CLOEXEC, 3);
    size_t depth = 1;

    for (; fd >= 0 && depth < t->depth; depth++) {
        int next = openat(fd, t->levels[depth - 1].names.last.text, OPEN_FLAGS);

        if (!is_level(next, &t->levels[depth])) {
            nk_close_fd(&next);
            break;
        }
        (void)close(fd);
        fd = next;
    }
    while (t->depth > depth)
        leave_level(t);
    nk_close_fd(&t->cur);
    t->cur = fd;
}

/* Back to the folder that this one lies in. 1: it is told that this one is left. */
static int pop(struct nk_walk *t, struct nk_walk_entry *out)
{
    size_t want = t->depth - 1;
    int fd = openat(t->cur, "..", OPEN_FLAGS);
    int rc;

    leave_level(t);
    if (is_level(fd, inner(t))) {
        nk_close_fd(&t->cur);
        t->cur = fd;
    } else {
        nk_close_fd(&fd);
        find_back(t);
        if (t->cur < 0)
            return -EMFILE;
    }
    if (t->depth < want)
        return 0; /* moved away: nothing is left to be told of */
    rc = set_path(t, inner(t)->names.last.text, out);
    out->leaving = true;
    return rc < 0 ? rc : 1;
}

static int open_inner(struct nk_walk *t, const char *name)
{
    int fd = openat(t->cur, name, OPEN_FLAGS);

    if (fd >= 0)
        return fd;
    if (errno == EACCES && t->options.force && nk_place_chmod_dir(t->cur, name, 0700) == 0)
        fd = openat(t->cur, name, OPEN_FLAGS);
    if (fd >= 0)
        return fd;
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
        return -ENOENT; /* gone, or no folder any more */
    return errno == EACCES && t->options.tolerant ? -ENOENT : -errno;
}

static bool is_too_long(struct nk_walk *t, size_t path_len)
{
    if (!t->options.path_max || path_len <= t->options.path_max)
        return false;
    t->cut = true;
    return true;
}

/* The cursor leads on only through the folders that it names. */
static bool on_cursor(const struct nk_walk *t, const struct nk_walk_entry *out)
{
    return t->cursor && (size_t)(t->cursor - t->after) == out->path_len + 1 &&
           memcmp(t->after, out->path, out->path_len) == 0;
}

/* A level that waits keeps what it holds only while that is needed, and while all hold little. */
static void spare(struct nk_walk *t, struct nk_names *names)
{
    size_t most = 2 * t->options.names_max;

    if (names->next < names->count && t->held <= (most > HELD_MAX ? most : HELD_MAX))
        return;
    t->held -= names->count;
    nk_names_drop(names);
}

/* However deep something lies, it can be removed: from the top, when the rest has gone. */
static int lift(struct nk_walk *t, const char *name)
{
    char to[32];
    int rc = -EEXIST;

    /* A folder changes where it says its parent is. */
    (void)nk_place_chmod_dir(t->cur, name, 0700);
    while (rc == -EEXIST || rc == -ENOTEMPTY || rc == -ENOTDIR) {
        if (t->lifts == LIFTS_MAX)
            return -ENAMETOOLONG;
        (void)snprintf(to, sizeof to, ".nook-deep-%u", t->lifts++);
        rc = renameat(t->cur, name, t->top, to) < 0 ? -errno : 0;
    }
    t->lifted |= rc == 0;
    return rc == -ENOENT ? 0 : rc;
}

static void begin_again(struct nk_walk *t)
{
    struct level *level = &t->levels[0];

    t->held -= level->names.count;
    nk_names_fini(&level->names);
    level->fresh = true;
    t->lifted = false;
}

/* 0: it was entered, or there is nothing to enter. */
static int descend(struct nk_walk *t, const char *name, struct nk_walk_entry *out)
{
    int rc = set_path(t, name, out);
    int fd;

    if (!on_cursor(t, out))
        t->cursor = NULL;
    if (rc < 0 || is_too_long(t, out->path_len + 2))
        return rc;
    fd = open_inner(t, name);
    if (fd < 0) {
        t->cursor = NULL;
        return fd == -ENOENT ? 0 : fd;
    }
    if (t->options.enters &&
        (fstat(fd, &out->st) < 0 || !t->options.enters(&out->st, t->depth, t->options.ctx))) {
        nk_close_fd(&fd);
        t->cursor = NULL;
        return 0;
    }
    spare(t, &inner(t)->names);
    rc = push(t, fd, out->path_len);
    return rc == -ENAMETOOLONG && t->options.force ? lift(t, name) : rc;
}

static int refill(struct nk_walk *t, uint64_t until_ns, struct nk_walk_entry *out)
{
    struct level *level = inner(t);
    int rc;

    t->reader.dir = t->cur;
    t->reader.until_ns = until_ns;
    t->reader.inner = t->options.depth == 0 || t->depth < t->options.depth;
    t->held -= level->names.count;
    rc = nk_names_read(&level->names, &t->reader);
    t->held += level->names.count;
    if (rc == -EAGAIN)
        return rc;
    level->fresh = false;
    t->path[level->path_len] = '\0';
    out->path = t->path;
    out->path_len = level->path_len;
    return rc;
}

static int visit(struct nk_walk *t, const struct nk_name *name, struct nk_walk_entry *out)
{
    int rc = set_path(t, name->text, out);

    t->cursor = NULL;
    if (rc < 0 || is_too_long(t, out->path_len))
        return rc;
    if (fstatat(t->cur, name->text, &out->st, AT_SYMLINK_NOFOLLOW) == 0)
        return 1;
    return errno == ENOENT || t->options.tolerant ? 0 : -errno;
}

static int advance(struct nk_walk *t, uint64_t until_ns, struct nk_walk_entry *out)
{
    struct level *level = inner(t);
    const struct nk_name *name = NULL;

    if (!level->fresh && !level->names.reading)
        name = nk_names_take(&level->names);
    if (!name && (level->fresh || level->names.reading || level->names.more))
        return refill(t, until_ns, out);
    if (!name && t->depth == 1 && t->lifted) {
        begin_again(t);
        return 0;
    }
    if (!name)
        return t->depth == 1 ? -ENODATA : pop(t, out);
    return name->inner ? descend(t, name->text, out) : visit(t, name, out);
}

int nk_walk_next(struct nk_walk *t, uint64_t until_ns, struct nk_walk_entry *out)
{
    int rc;

    do
        rc = advance(t, until_ns, out);
    while (rc == 0);
    return rc == -ENODATA ? 0 : rc;
}

bool nk_walk_is_cut(const struct nk_walk *t)
{
    return t->cut;
}
