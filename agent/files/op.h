/*
 * The operations on one path (or two): look, make, change the mode, remove, empty, copy, move.
 *
 * The caller fills the struct on the loop, sets one of the functions below as the task's `slice`
 * (and its `undo`, where it has one), and starts the task. It calls nk_op_fini after `over`.
 * Everything between is on pool threads with the user's rights.
 */
#ifndef NK_FILES_OP_H
#define NK_FILES_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "files/entry.h"
#include "files/path.h"
#include "files/task.h"
#include "files/temp.h"
#include "files/walk.h"

#define NK_OP_LATER 64

struct nk_op {
    struct nk_task task;
    const struct nk_roots *roots; /* borrowed: outlives the task */
    char *path;                   /* owned */
    size_t path_len;
    char *to; /* owned; NULL: the operation has one path */
    size_t to_len;
    mode_t mode;
    bool recursive;
    bool overwrite;
    const char *const *keep; /* borrowed, NULL-ended, or NULL: folders that emptying leaves */
    char temp[NK_TEMP_MAX];  /* for copy and move: made by the caller, on the loop */
    bool bounded;            /* copies may add no more than these: */
    uint64_t room_bytes, room_files;
    /* the result */
    struct nk_entry entry; /* of all but remove and empty */
    int fd;                /* owned: of nk_op_open; -1: taken, or none */
    /* the operation's own */
    struct nk_place place;
    struct nk_place dest;
    struct nk_owners owners;
    struct nk_walk *tree; /* owned */
    int (*phase)(struct nk_op *op);
    unsigned rounds;
    bool begun; /* something lies at `temp` */
    bool moves;
    int in, out;            /* owned: the file that is being copied */
    int dest_top;           /* owned: the folder that is being made */
    int dest_dir;           /* owned: the one in it that is being filled */
    char *dest_at;          /* owned: its path */
    int later[NK_OP_LATER]; /* owned: folders too deep for the walk, which come when it is over */
    size_t later_count;
    int part; /* owned: the one of them that is being walked; -1: none */
};

void nk_op_init(struct nk_op *op); /* descriptors empty; everything else is zeroed */
void nk_op_fini(struct nk_op *op);

/* Each is a `slice`; `path` (and `to`) as the contract has them. */
int nk_op_stat(struct nk_task *t);
int nk_op_open(struct nk_task *t);  /* a regular file, for reading */
int nk_op_mkdir(struct nk_task *t); /* content with a folder that is there */
int nk_op_chmod(struct nk_task *t);
int nk_op_remove(struct nk_task *t);
int nk_op_empty(struct nk_task *t); /* all that is in `path`, a folder; those of `keep` stay */
int nk_op_copy(struct nk_task *t);
int nk_op_move(struct nk_task *t);
int nk_op_copy_undo(struct nk_task *t); /* the `undo` of copy and move */

/* Between the parts of an operation. */
int nk_op_remove_begin(struct nk_op *op, int dir, const char *name); /* sets `tree`; 0 or -errno */
int nk_op_remove_go(struct nk_op *op); /* NK_TASK_MORE, 0, or -1 with err; `tree` is freed */

static inline struct nk_op *nk_op_of(struct nk_task *t)
{
    return NK_CONTAINER_OF(t, struct nk_op, task);
}

#endif
