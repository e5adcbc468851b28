#include "files/tar_way.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"

#define STEP_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

void nk_tar_way_init(struct nk_tar_way *w, int dest)
{
    w->dest = dest;
    w->dir = -1;
}

void nk_tar_way_fini(struct nk_tar_way *w)
{
    nk_close_fd(&w->dir);
}

int nk_tar_way_no_folder(int dir, const char *name)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
        return -ELOOP;
    return -ENOTDIR;
}

static int step(int dir, const char *name, bool make)
{
    int fd = openat(dir, name, STEP_FLAGS);

    if (fd < 0 && errno == ENOENT && make) {
        if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
            return -errno;
        fd = openat(dir, name, STEP_FLAGS);
    }
    if (fd >= 0)
        return fd;
    return errno == ENOTDIR || errno == ELOOP ? nk_tar_way_no_folder(dir, name) : -errno;
}

/* A link further up may lead the look elsewhere, but what it finds must be the folder itself. */
static bool is_kept(const struct nk_tar_way *w, const char *path, size_t len)
{
    struct stat st;

    return w->dir >= 0 && w->len == len && memcmp(w->path, path, len) == 0 &&
           fstatat(w->dest, w->path, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == w->dev &&
           st.st_ino == w->ino;
}

/* A folder that cannot be looked at is only not kept. */
static int keep(struct nk_tar_way *w, int *dir, const char *path, size_t len)
{
    struct stat st;

    nk_close_fd(&w->dir);
    w->len = 0;
    w->dir = nk_take_fd(dir);
    if (fstat(w->dir, &st) == 0) {
        memcpy(w->path, path, len);
        w->path[len] = '\0';
        w->len = len;
        w->dev = st.st_dev;
        w->ino = st.st_ino;
    }
    return w->dir;
}

static int walk(struct nk_tar_way *w, const char *path, size_t len, bool make)
{
    nk_auto_fd int dir = -1;
    size_t at = 0;

    while (at < len) {
        char name[NK_TAR_NAME_PART + 1];
        const char *slash = memchr(path + at, '/', len - at);
        size_t n = slash ? (size_t)(slash - path) - at : len - at;
        int next;

        memcpy(name, path + at, n);
        name[n] = '\0';
        next = step(dir < 0 ? w->dest : dir, name, make);
        if (next < 0)
            return next;
        nk_close_fd(&dir);
        dir = next;
        at += n + 1;
    }
    return keep(w, &dir, path, len);
}

int nk_tar_way_enter(struct nk_tar_way *w, const char *path, bool make, const char **out_leaf)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    int dir = w->dest;

    if (len > 0)
        dir = is_kept(w, path, len) ? w->dir : walk(w, path, len, make);
    if (dir >= 0)
        *out_leaf = slash ? slash + 1 : path;
    return dir;
}
