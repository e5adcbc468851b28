/* Removing a file, a link, a folder with or without content; and emptying a folder. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "files/op.h"

#define ROUNDS_MAX 5 /* when others put new files into what is being removed */

int nk_op_remove_begin(struct nk_op *op, int dir, const char *name)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(dir, name, flags);

    if (fd < 0 && errno == EACCES && nk_place_chmod_dir(dir, name, 0700) == 0)
        fd = openat(dir, name, flags);
    if (fd < 0)
        return -errno;
    return nk_walk_new(fd, &(struct nk_walk_options){.force = true}, &op->tree);
}

/* What is in the way of the last removal is seen there: a name may have changed its kind. */
static bool is_settled_later(int sys)
{
    return sys == ENOENT || sys == EISDIR || sys == ENOTDIR || sys == ENOTEMPTY || sys == EEXIST;
}

static bool is_kept(const struct nk_op *op, const char *path)
{
    for (const char *const *name = op->keep; name && *name; name++)
        if (strcmp(*name, path) == 0)
            return true;
    return false;
}

static int inner(struct nk_op *op, const struct nk_walk_entry *e)
{
    if (!e->leaving && S_ISDIR(e->st.st_mode))
        return 0;
    if (e->leaving && is_kept(op, e->path))
        return 0;
    if (unlinkat(e->dir, e->name, e->leaving ? AT_REMOVEDIR : 0) == 0 || is_settled_later(errno))
        return 0;
    return nk_place_fail_in(&op->place, e->path, errno, &op->task.err);
}

static int remove_all(struct nk_op *op)
{
    struct nk_walk_entry e;

    while (!nk_task_due(&op->task)) {
        int rc = nk_walk_next(op->tree, op->task.until_ns, &e);

        if (rc == -EAGAIN)
            return NK_TASK_MORE;
        if (rc == 0)
            return 0;
        if (rc < 0)
            return nk_place_fail_in(&op->place, e.path, -rc, &op->task.err);
        if (inner(op, &e) < 0)
            return -1;
    }
    return NK_TASK_MORE;
}

int nk_op_remove_go(struct nk_op *op)
{
    int rc = remove_all(op);

    if (rc != NK_TASK_MORE) {
        nk_walk_free(op->tree);
        op->tree = NULL;
    }
    return rc;
}

static int remove_place(struct nk_op *op)
{
    const struct nk_place *place = &op->place;
    struct stat st;
    int flags, rc;

    if (nk_place_stat(place, &st, &op->task.err) < 0)
        return op->rounds > 0 && op->task.err.code == NK_NOT_FOUND ? 0 : -1;
    flags = S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0;
    if (unlinkat(place->dir, place->name, flags) == 0)
        return 0;
    if (!flags || (errno != ENOTEMPTY && errno != EEXIST))
        return nk_place_fail(place, errno, &op->task.err);
    if (!op->recursive || op->rounds++ == ROUNDS_MAX)
        return nk_place_fail(place, ENOTEMPTY, &op->task.err);
    rc = nk_op_remove_begin(op, place->dir, place->name);
    return rc < 0 ? nk_place_fail(place, -rc, &op->task.err) : NK_TASK_MORE;
}

int nk_op_remove(struct nk_task *t)
{
    struct nk_op *op = nk_op_of(t);

    if (op->tree) {
        int rc = nk_op_remove_go(op);

        return rc == 0 ? NK_TASK_MORE : rc;
    }
    if (op->place.name[0] == '\0') {
        if (nk_path_resolve(op->roots, op->path, op->path_len, NK_PATH_WRITE, &op->place, &t->err))
            return -1;
        if (op->place.is_root)
            return nk_fail(&t->err, NK_FORBIDDEN, "%s: this folder itself is not removed",
                           op->place.path);
    }
    return remove_place(op);
}

/* What was no folder by that name is gone now. */
static int make_kept(struct nk_op *op)
{
    for (const char *const *name = op->keep; name && *name; name++) {
        int rc = nk_place_mkdir(op->place.dir, *name, 0700);

        if (rc < 0 && rc != -EEXIST)
            return nk_place_fail_in(&op->place, *name, -rc, &op->task.err);
    }
    return 0;
}

int nk_op_empty(struct nk_task *t)
{
    struct nk_op *op = nk_op_of(t);
    int rc;

    if (op->tree) {
        rc = nk_op_remove_go(op);
        return rc == 0 ? make_kept(op) : rc;
    }
    if (nk_path_resolve(op->roots, op->path, op->path_len, NK_PATH_WRITE, &op->place, &t->err) < 0)
        return -1;
    rc = nk_op_remove_begin(op, op->place.dir, op->place.name);
    return rc < 0 ? nk_place_fail(&op->place, -rc, &t->err) : NK_TASK_MORE;
}
