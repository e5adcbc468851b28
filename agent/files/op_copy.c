/* Copying and moving: all is made under a temporary name beside the destination, and gets its own
 * name when it is complete. A move is a rename where the file system can, else a copy and a removal. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "files/op.h"
#include "files/op_bytes.h"

static int fail_at(struct nk_op *op, const char *inner, int sys)
{
    return nk_place_fail_in(&op->place, inner, sys, &op->task.err);
}

static int remove_old(struct nk_op *op)
{
    if (op->tree) {
        int rc = nk_op_remove_go(op);

        if (rc != 0)
            return rc;
    }
    if (unlinkat(op->dest.dir, op->temp, 0) < 0 && errno != ENOENT)
        (void)unlinkat(op->dest.dir, op->temp, AT_REMOVEDIR);
    return 0;
}

static int finish(struct nk_op *op)
{
    op->begun = false;
    return nk_entry_at(&op->entry, &op->dest, &op->owners, &op->task.err);
}

/* What was replaced, then, of a move, the source. */
static int drop_old(struct nk_op *op)
{
    int rc = remove_old(op);

    return rc == 0 ? finish(op) : rc;
}

static int drop_source(struct nk_op *op)
{
    int rc = op->tree ? nk_op_remove_go(op) : 0;

    if (rc != 0)
        return rc;
    if (unlinkat(op->place.dir, op->place.name, 0) < 0 &&
        unlinkat(op->place.dir, op->place.name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return fail_at(op, "", errno);
    if (!op->begun)
        return finish(op);
    rc = nk_op_remove_begin(op, op->dest.dir, op->temp);
    op->phase = drop_old;
    return rc == 0 || rc == -ENOENT || rc == -ENOTDIR ? NK_TASK_MORE : fail_at(op, "", -rc);
}

static int drop_next(struct nk_op *op, bool old)
{
    int rc = 0;

    op->begun = old;
    if (op->moves) {
        op->phase = drop_source;
        rc = nk_op_remove_begin(op, op->place.dir, op->place.name);
    } else if (old) {
        op->phase = drop_old;
        rc = nk_op_remove_begin(op, op->dest.dir, op->temp);
    } else {
        return finish(op);
    }
    return rc == 0 || rc == -ENOTDIR || rc == -ELOOP ? NK_TASK_MORE : fail_at(op, "", -rc);
}

static int settle(struct nk_op *op)
{
    bool old = false;
    int rc = nk_temp_settle(op->dest.dir, op->temp, op->dest.name, op->overwrite, &old);

    if (rc < 0)
        return nk_place_fail(&op->dest, -rc, &op->task.err);
    nk_close_fd(&op->in);
    nk_close_fd(&op->out);
    nk_close_fd(&op->dest_top);
    nk_close_fd(&op->dest_dir);
    return drop_next(op, old);
}

/* The folder that the copy of `path` lies in; entries come folder by folder, so it is kept. */
static int enter_dest(struct nk_op *op, const struct nk_walk_entry *e)
{
    size_t len = e->path_len - strlen(e->name);
    size_t had = op->dest_at ? strlen(op->dest_at) : 0;
    bool deeper = op->dest_at && had <= len && strncmp(op->dest_at, e->path, had) == 0;
    int fd;

    if (deeper && had == len)
        return 0;
    free(op->dest_at);
    op->dest_at = strndup(e->path, len);
    if (!op->dest_at)
        return -ENOMEM;
    fd = deeper ? nk_place_enter(op->dest_dir, e->path + had, len - had)
                : nk_place_enter(op->dest_top, e->path, len);
    if (fd < 0)
        return fd;
    nk_close_fd(&op->dest_dir);
    op->dest_dir = fd;
    return 0;
}

static bool is_own_copy(struct nk_op *op, const struct stat *st)
{
    struct stat top;

    return fstat(op->dest_top, &top) == 0 && top.st_ino == st->st_ino && top.st_dev == st->st_dev;
}

/* 0, -errno, -EAGAIN: a file was begun that is copied in the slices to come, or -EDEADLK: the copy
 * lies in what is copied. */
static int copy_entry(struct nk_op *op, const struct nk_walk_entry *e)
{
    /* The way to a folder is walked anew when another was left: what has no path is too deep. */
    int rc = e->path_len < PATH_MAX ? enter_dest(op, e) : -ENAMETOOLONG;

    if (rc < 0)
        return rc;
    if (op->bounded && !e->leaving && op->room_files-- == 0)
        return -EDQUOT;
    if (e->leaving)
        return nk_op_bytes_folder(op->dest_dir, e->name, e->dir, e->name, op->moves);
    if (S_ISDIR(e->st.st_mode) && is_own_copy(op, &e->st))
        return -EDEADLK;
    if (S_ISDIR(e->st.st_mode))
        return mkdirat(op->dest_dir, e->name, 0700) < 0 ? -errno : 0;
    if (S_ISLNK(e->st.st_mode))
        return nk_op_bytes_link(e->dir, e->name, op->dest_dir, e->name);
    if (!S_ISREG(e->st.st_mode)) /* a copy leaves it out; a move must not lose it */
        return op->moves ? -EOPNOTSUPP : 0;
    rc = nk_op_bytes_begin(op, e->dir, e->name, op->dest_dir, e->name);
    return rc == 0 ? -EAGAIN : rc;
}

static int settle_tree(struct nk_op *op)
{
    int rc = nk_op_bytes_folder(op->dest.dir, op->temp, op->place.dir, op->place.name, op->moves);

    nk_walk_free(op->tree);
    op->tree = NULL;
    return rc < 0 ? fail_at(op, "", -rc) : settle(op);
}

static int go_tree(struct nk_op *op)
{
    struct nk_walk_entry e;

    while (!nk_task_due(&op->task)) {
        int rc = op->in >= 0 ? nk_op_bytes_go(op) : 0;

        if (rc == NK_TASK_MORE)
            return rc;
        if (rc < 0)
            return -1;
        rc = nk_walk_next(op->tree, op->task.until_ns, &e);
        if (rc == -EAGAIN)
            return NK_TASK_MORE;
        if (rc == 0)
            return settle_tree(op);
        if (rc > 0)
            rc = copy_entry(op, &e);
        if (rc == -EDEADLK)
            return nk_fail(&op->task.err, NK_BAD_REQUEST,
                           "%s: lies in the folder that is to be copied", op->dest.path);
        if (rc < 0 && rc != -EAGAIN)
            return fail_at(op, e.path, -rc);
    }
    return NK_TASK_MORE;
}

static int go_file(struct nk_op *op)
{
    int rc = nk_op_bytes_go(op);

    return rc == 0 ? settle(op) : rc;
}

static int begin_tree(struct nk_op *op)
{
    int fd = nk_place_open_dir(&op->place, O_RDONLY, &op->task.err);
    int rc;

    if (fd < 0)
        return -1;
    if (mkdirat(op->dest.dir, op->temp, 0700) < 0) {
        rc = errno;
        (void)close(fd);
        return nk_place_fail(&op->dest, rc, &op->task.err);
    }
    op->begun = true;
    rc = nk_walk_new(fd, &(struct nk_walk_options){0}, &op->tree);
    if (rc < 0)
        return fail_at(op, "", -rc);
    op->dest_top = openat(op->dest.dir, op->temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (op->dest_top < 0)
        return nk_place_fail(&op->dest, errno, &op->task.err);
    if (nk_temp_hold(op->dest_top) < 0)
        return nk_place_fail(&op->dest, EBUSY, &op->task.err);
    op->phase = go_tree;
    return NK_TASK_MORE;
}

static int begin_copy(struct nk_op *op, mode_t kind)
{
    int rc;

    if (S_ISDIR(kind))
        return begin_tree(op);
    op->begun = true;
    if (S_ISLNK(kind)) {
        rc = nk_op_bytes_link(op->place.dir, op->place.name, op->dest.dir, op->temp);
        return rc < 0 ? nk_place_fail(&op->dest, -rc, &op->task.err) : settle(op);
    }
    if (!S_ISREG(kind))
        return nk_fail(&op->task.err, NK_BAD_PATH, "%s: is neither a file, a folder nor a link",
                       op->place.path);
    rc = nk_op_bytes_begin(op, op->place.dir, op->place.name, op->dest.dir, op->temp);
    op->phase = go_file;
    return rc < 0 ? fail_at(op, "", -rc) : NK_TASK_MORE;
}

/* Both places. What is in the way at the destination is refused before any work. */
static int resolve(struct nk_op *op, struct stat *out)
{
    struct nk_err *err = &op->task.err;
    struct stat st;

    if (nk_path_resolve(op->roots, op->path, op->path_len, op->moves ? NK_PATH_WRITE : 0,
                        &op->place, err) < 0)
        return -1;
    if (nk_place_stat(&op->place, out, err) < 0)
        return -1;
    if (op->moves && op->place.is_root)
        return nk_fail(err, NK_FORBIDDEN, "%s: this folder itself is not moved", op->place.path);
    if (nk_path_resolve(op->roots, op->to, op->to_len, NK_PATH_WRITE | NK_PATH_PARENTS, &op->dest,
                        err) < 0)
        return -1;
    if (fstatat(op->dest.dir, op->dest.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (!op->overwrite || op->dest.is_root)
        return nk_fail(err, NK_EXISTS, "%s: is there already", op->dest.path);
    if (st.st_ino == out->st_ino && st.st_dev == out->st_dev)
        return nk_fail(err, NK_BAD_REQUEST, "path and to are the same file: %s", op->dest.path);
    return 0;
}

/* 0: done; -EXDEV: it must be copied. */
static int rename_it(struct nk_op *op)
{
    unsigned flags = op->overwrite ? 0 : RENAME_NOREPLACE;
    int rc = 0;

    if (renameat2(op->place.dir, op->place.name, op->dest.dir, op->dest.name, flags) < 0)
        rc = -errno;
    if (flags && (rc == -EINVAL || rc == -ENOSYS) && op->dest.name[0]) {
        rc = faccessat(op->dest.dir, op->dest.name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? -EEXIST : 0;
        if (rc == 0 && renameat(op->place.dir, op->place.name, op->dest.dir, op->dest.name) < 0)
            rc = -errno;
    }
    return rc;
}

/* Over something that a rename does not replace: first to the temporary name. */
static int rename_over(struct nk_op *op)
{
    bool old = false;
    int rc;

    if (renameat(op->place.dir, op->place.name, op->dest.dir, op->temp) < 0)
        return nk_place_fail(&op->dest, errno, &op->task.err);
    rc = nk_temp_settle(op->dest.dir, op->temp, op->dest.name, true, &old);
    if (rc < 0) {
        (void)renameat(op->dest.dir, op->temp, op->place.dir, op->place.name);
        return nk_place_fail(&op->dest, -rc, &op->task.err);
    }
    op->moves = false; /* the source is gone */
    return drop_next(op, old);
}

int nk_op_copy(struct nk_task *t)
{
    struct nk_op *op = nk_op_of(t);
    struct stat st;

    if (op->phase)
        return op->phase(op);
    return resolve(op, &st) < 0 ? -1 : begin_copy(op, st.st_mode);
}

int nk_op_move(struct nk_task *t)
{
    struct nk_op *op = nk_op_of(t);
    struct stat st;
    int rc;

    if (op->phase)
        return op->phase(op);
    op->moves = true;
    if (resolve(op, &st) < 0)
        return -1;
    rc = rename_it(op);
    if (rc == 0)
        return finish(op);
    if (rc == -EXDEV)
        return begin_copy(op, st.st_mode);
    if (op->overwrite && (rc == -ENOTEMPTY || rc == -EEXIST || rc == -EISDIR || rc == -ENOTDIR))
        return rename_over(op);
    if (rc == -EINVAL)
        return nk_fail(&t->err, NK_BAD_REQUEST, "%s: lies in the folder that is to be moved",
                       op->dest.path);
    return nk_place_fail(&op->dest, -rc, &t->err);
}

int nk_op_copy_undo(struct nk_task *t)
{
    struct nk_op *op = nk_op_of(t);
    int rc;

    if (!op->begun) {
        nk_path_unmake(op->roots, &op->dest);
        return 0;
    }
    if (op->phase != remove_old) {
        struct nk_err kept = t->err;

        nk_walk_free(op->tree);
        op->tree = NULL;
        (void)nk_op_remove_begin(op, op->dest.dir, op->temp);
        op->phase = remove_old;
        t->err = kept;
        return NK_TASK_MORE;
    }
    rc = remove_old(op);
    if (rc != NK_TASK_MORE)
        nk_path_unmake(op->roots, &op->dest);
    return rc == NK_TASK_MORE ? rc : 0;
}
