/*
 * The folders that a client's paths may lie in: writable ones, and more that are only read.
 *
 * Each is held as an O_PATH descriptor, so that what is a root is decided once. The first one is
 * the working directory, where relative paths begin. Made at start (or with an identity), owned by
 * its maker, and never changed afterwards: jobs on any thread read it.
 */
#ifndef NK_FILES_ROOTS_H
#define NK_FILES_ROOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct nk_kernel;

struct nk_root {
    int fd;     /* owned; -1: it was not there, and is looked for anew at each use */
    char *path; /* owned: absolute and clean; "" for the root of the file system */
    size_t len;
    bool writable;
};

struct nk_roots {
    struct nk_root *item; /* owned; item[0]: the working directory */
    size_t count;
    const struct nk_kernel *kernel; /* borrowed: outlives the roots */
};

/* Lists are NULL-ended, absolute; `readable` may be NULL. Opened with the rights of the calling
 * thread. A folder that cannot be opened is no error: it is looked for when it is used. */
int nk_roots_new(const char *const *writable, const char *const *readable,
                 const struct nk_kernel *kernel, struct nk_roots **out, struct nk_err *err);

/* One writable root that is open already; takes `dir` (any directory descriptor), also on failure.
 * `path` is what absolute paths and links call it. */
int nk_roots_new_at(int dir, const char *path, const struct nk_kernel *kernel,
                    struct nk_roots **out, struct nk_err *err);
void nk_roots_free(struct nk_roots *roots);

/* The innermost root that an absolute path lies in, or NULL; *out_rest: what follows in `path`.
 * Empty and "." components count for nothing; ".." is a name like any other here. */
const struct nk_root *nk_roots_find(const struct nk_roots *roots, const char *path,
                                    const char **out_rest);

/* A descriptor of its own (O_PATH) for the caller, opened with the thread's rights; or -errno. */
int nk_roots_enter(const struct nk_root *root);

#endif
