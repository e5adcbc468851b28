/* The mode of one file or folder, or of all below it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "files/op.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Without a right to read it, a file can still be changed by its owner, through /proc. */
static int by_proc(int dir, const char *name, mode_t mode)
{
    nk_auto_fd int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    char path[40];
    struct stat st;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode))
        return -ELOOP;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (chmod(path, mode) == 0)
        return 0;
    return errno == ENOENT ? -EOPNOTSUPP : -errno; /* the file is held: what is missing is /proc */
}

/* Never through a link, whatever is swapped meanwhile. */
static int change(int dir, const char *name, mode_t mode, mode_t kind)
{
    nk_auto_fd int fd = -1;

    if (S_ISLNK(kind))
        return 0;
    if (S_ISREG(kind) || S_ISDIR(kind))
        fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return by_proc(dir, name, mode);
    return fchmod(fd, mode) < 0 ? -errno : 0;
}

static int finish(struct nk_op *op, mode_t kind)
{
    int rc = change(op->place.dir, op->place.name, op->mode, kind);

    if (rc < 0)
        return nk_place_fail(&op->place, -rc, &op->task.err);
    return nk_entry_at(&op->entry, &op->place, &op->owners, &op->task.err);
}

/* A folder comes after what is in it: its new mode may keep us out. */
static int inner(struct nk_op *op, const struct nk_walk_entry *e)
{
    mode_t kind = e->leaving ? S_IFDIR : e->st.st_mode;
    int rc;

    if (S_ISDIR(kind) && !e->leaving)
        return 0;
    rc = change(e->dir, e->name, op->mode, kind);
    if (rc < 0 && rc != -ENOENT && rc != -ELOOP)
        return nk_place_fail_in(&op->place, e->path, -rc, &op->task.err);
    return 0;
}

/* For each level a walk keeps what leads back, and has a bound; what is below is walked by itself. */
static int put_off(struct nk_op *op, const struct nk_walk_entry *e)
{
    int fd = -1;

    if (op->later_count == NK_OP_LATER)
        return nk_place_fail_in(&op->place, e->path, ENAMETOOLONG, &op->task.err);
    fd = openat(e->dir, e->name, DIR_FLAGS);
    if (fd >= 0)
        op->later[op->later_count++] = fd;
    else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
        return nk_place_fail_in(&op->place, e->path, errno, &op->task.err);
    return 0;
}

/* What lies above may keep us out by now: from here on it goes by the descriptor. */
static int next_part(struct nk_op *op)
{
    int fd, rc;

    nk_walk_free(op->tree);
    op->tree = NULL;
    if (op->part >= 0 && fchmod(op->part, op->mode) < 0)
        return nk_place_fail(&op->place, errno, &op->task.err);
    nk_close_fd(&op->part);
    if (op->later_count == 0)
        return finish(op, S_IFDIR);
    op->part = op->later[--op->later_count];
    fd = fcntl(op->part, F_DUPFD_CLOEXEC, 3);
    rc = fd < 0 ? -errno : nk_walk_new(fd, &(struct nk_walk_options){0}, &op->tree);
    return rc < 0 ? nk_place_fail(&op->place, -rc, &op->task.err) : NK_TASK_MORE;
}

static int go(struct nk_op *op)
{
    struct nk_walk_entry e;

    while (!nk_task_due(&op->task)) {
        int rc = nk_walk_next(op->tree, op->task.until_ns, &e);

        if (rc == -EAGAIN)
            return NK_TASK_MORE;
        if (rc == 0)
            return next_part(op);
        if (rc == -ENAMETOOLONG && put_off(op, &e) < 0)
            return -1;
        if (rc == -ENAMETOOLONG)
            continue;
        if (rc < 0)
            return nk_place_fail_in(&op->place, e.path, -rc, &op->task.err);
        if (inner(op, &e) < 0)
            return -1;
    }
    return NK_TASK_MORE;
}

static int begin(struct nk_op *op)
{
    struct stat st;
    int fd, rc;

    if (nk_path_resolve(op->roots, op->path, op->path_len, NK_PATH_WRITE | NK_PATH_NO_LINK,
                        &op->place, &op->task.err) < 0)
        return -1;
    if (nk_place_stat(&op->place, &st, &op->task.err) < 0)
        return -1;
    if (!S_ISDIR(st.st_mode) || !op->recursive)
        return finish(op, st.st_mode);
    fd = nk_place_open_dir(&op->place, O_RDONLY, &op->task.err);
    if (fd < 0)
        return -1;
    rc = nk_walk_new(fd, &(struct nk_walk_options){0}, &op->tree);
    if (rc < 0)
        return nk_place_fail(&op->place, -rc, &op->task.err);
    return NK_TASK_MORE;
}

int nk_op_chmod(struct nk_task *t)
{
    struct nk_op *op = nk_op_of(t);

    return op->tree ? go(op) : begin(op);
}
