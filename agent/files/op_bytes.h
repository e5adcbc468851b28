/*
 * Parts of a copy: the bytes of a file, a link, a folder's mode. Of op_copy.c only.
 */
#ifndef NK_FILES_OP_BYTES_H
#define NK_FILES_OP_BYTES_H

#include "files/op.h"

/* Opens a regular file and makes its copy, which must not be there: op->in, op->out. 0 or -errno. */
int nk_op_bytes_begin(struct nk_op *op, int dir, const char *name, int to_dir, const char *to);
/* NK_TASK_MORE, 0 (both closed; the copy has the mode, and for a move the times), or -1 with err. */
int nk_op_bytes_go(struct nk_op *op);

int nk_op_bytes_link(int dir, const char *name, int to_dir, const char *to);
/* The finished folder gets the mode of the one it was made from. */
int nk_op_bytes_folder(int to_dir, const char *name, int from_dir, const char *from, bool times);

#endif
