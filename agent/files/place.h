/*
 * A place in the file system: a descriptor of a folder and one name in it.
 *
 * What files/path.h makes of a client's string. What lies at the name may change at any time, so
 * nothing here follows a link in it. The owner calls nk_place_fini.
 *
 * Blocking; on a pool thread that has the user's rights.
 */
#ifndef NK_FILES_PLACE_H
#define NK_FILES_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/err.h"

#define NK_PLACE_PATH_MAX 4096
#define NK_PLACE_NAME_MAX 255

struct nk_place {
    int dir;                          /* owned: O_PATH, the folder it lies in; -1: none */
    char name[NK_PLACE_NAME_MAX + 1]; /* one component; "." where `dir` is the place itself */
    bool is_root;                     /* one of the roots itself */
    bool absolute;                    /* the client asked with an absolute path */
    unsigned made;                    /* folders that were made for it, the last ones of its path */
    bool slash;                       /* the client's path ended in a slash */
    char path[NK_PLACE_PATH_MAX + 1]; /* for answers, as asked for but clean; "." if empty */
};

void nk_place_fini(struct nk_place *place); /* a zeroed or a failed one is fine */

/* Never follow a link in the last place. 0 or a descriptor, or -1 with err. */
int nk_place_stat(const struct nk_place *place, struct stat *out, struct nk_err *err);
int nk_place_open_dir(const struct nk_place *place, int flags /* O_PATH or O_RDONLY */,
                      struct nk_err *err);
/* A regular file, for reading; never blocks, whatever lies there. Else NK_BAD_PATH. */
int nk_place_open_file(const struct nk_place *place, struct stat *out, struct nk_err *err);

/* Makes one folder with exactly these permission bits, whatever the umask. 0, or -errno. */
int nk_place_mkdir(int dir, const char *name, mode_t mode);

/* A folder below `dir`, by its path (`len` bytes, "" is `dir` itself), through folders only. A
 * descriptor (O_PATH), or -errno. */
int nk_place_enter(int dir, const char *path, size_t len);

/* Of a folder that may not even be read; by a descriptor, never through a link. 0, or -errno. */
int nk_place_chmod_dir(int dir, const char *name, mode_t mode);

/* nk_fail_sys with the place's name in front. */
int nk_place_fail(const struct nk_place *place, int sys, struct nk_err *err);
int nk_place_fail_in(const struct nk_place *place, const char *inner /* a path in it, or "" */,
                     int sys, struct nk_err *err);

#endif
