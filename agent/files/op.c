#include "files/op.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"

void nk_op_init(struct nk_op *op)
{
    memset(op, 0, sizeof *op);
    op->fd = op->in = op->out = op->dest_top = op->dest_dir = op->part = -1;
}

void nk_op_fini(struct nk_op *op)
{
    nk_close_fd(&op->fd);
    nk_close_fd(&op->in);
    nk_close_fd(&op->out);
    nk_close_fd(&op->dest_top);
    nk_close_fd(&op->dest_dir);
    nk_close_fd(&op->part);
    while (op->later_count > 0)
        nk_close_fd(&op->later[--op->later_count]);
    nk_place_fini(&op->place);
    nk_place_fini(&op->dest);
    nk_walk_free(op->tree);
    free(op->dest_at);
    free(op->path);
    free(op->to);
    nk_op_init(op);
}

static int resolve(struct nk_op *op, unsigned flags)
{
    return nk_path_resolve(op->roots, op->path, op->path_len, flags, &op->place, &op->task.err);
}

static int answer(struct nk_op *op)
{
    return nk_entry_at(&op->entry, &op->place, &op->owners, &op->task.err);
}

int nk_op_stat(struct nk_task *t)
{
    struct nk_op *op = nk_op_of(t);

    return resolve(op, 0) < 0 ? -1 : answer(op);
}

int nk_op_open(struct nk_task *t)
{
    struct nk_op *op = nk_op_of(t);

    if (resolve(op, NK_PATH_FOLLOW) < 0)
        return -1;
    op->fd = nk_place_open_file(&op->place, &op->entry.st, &t->err);
    return op->fd < 0 ? -1 : 0;
}

int nk_op_mkdir(struct nk_task *t)
{
    struct nk_op *op = nk_op_of(t);
    int rc;

    if (resolve(op, NK_PATH_WRITE | NK_PATH_PARENTS) < 0)
        return -1;
    rc = op->place.is_root ? -EEXIST : nk_place_mkdir(op->place.dir, op->place.name, op->mode);
    if (rc < 0 && rc != -EEXIST)
        return nk_place_fail(&op->place, -rc, &t->err);
    if (answer(op) < 0)
        return -1;
    if (!S_ISDIR(op->entry.st.st_mode))
        return nk_fail(&t->err, NK_EXISTS, "%s: is there and no directory", op->place.path);
    return 0;
}
