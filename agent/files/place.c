#include "files/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"

void nk_place_fini(struct nk_place *place)
{
    if (place->name[0] != '\0')
        nk_close_fd(&place->dir);
    place->name[0] = '\0';
}

/* What the file system says of a path that is not in the general table of errors. */
static enum nk_code code_of(int sys)
{
    switch (sys) {
    case EISDIR:
    case EINVAL:
    case ENXIO:
        return NK_BAD_PATH;
    case EFBIG:
        return NK_TOO_LARGE;
    case EBUSY:
    case ETXTBSY:
    case ESTALE:
    case EMLINK:
        return NK_CONFLICT;
    default:
        return NK_OK;
    }
}

int nk_place_fail_in(const struct nk_place *place, const char *inner, int sys, struct nk_err *err)
{
    enum nk_code code = code_of(sys);
    const char *slash = *inner ? "/" : "";

    (void)nk_fail_sys(err, sys, "%s%s%s", place->path, slash, inner);
    if (err && code != NK_OK)
        err->code = code;
    return -1;
}

int nk_place_fail(const struct nk_place *place, int sys, struct nk_err *err)
{
    return nk_place_fail_in(place, "", sys, err);
}

int nk_place_stat(const struct nk_place *place, struct stat *out, struct nk_err *err)
{
    struct stat st;

    if (fstatat(place->dir, place->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return nk_place_fail(place, errno, err);
    if (place->slash && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
        return nk_place_fail(place, ENOTDIR, err);
    *out = st;
    return 0;
}

int nk_place_open_dir(const struct nk_place *place, int flags, struct nk_err *err)
{
    int fd = openat(place->dir, place->name, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? nk_place_fail(place, errno, err) : fd;
}

static int not_a_file(const struct nk_place *place, mode_t mode, struct nk_err *err)
{
    const char *what = "a special file";

    if (S_ISDIR(mode))
        what = "a directory";
    else if (S_ISLNK(mode))
        what = "a symbolic link";
    else if (S_ISFIFO(mode))
        what = "a FIFO";
    else if (S_ISSOCK(mode))
        what = "a socket";
    else if (S_ISCHR(mode) || S_ISBLK(mode))
        what = "a device";
    return nk_fail(err, NK_BAD_PATH, "%s: is %s, not a regular file", place->path, what);
}

/* Looked at before it is opened: opening a device may already do something. And after: it may have
 * been swapped. */
int nk_place_open_file(const struct nk_place *place, struct stat *out, struct nk_err *err)
{
    nk_auto_fd int fd = -1;
    struct stat st;

    if (nk_place_stat(place, &st, err) < 0)
        return -1;
    if (!S_ISREG(st.st_mode))
        return not_a_file(place, st.st_mode, err);
    fd = openat(place->dir, place->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return nk_place_fail(place, errno, err);
    if (fstat(fd, &st) < 0)
        return nk_place_fail(place, errno, err);
    if (!S_ISREG(st.st_mode))
        return not_a_file(place, st.st_mode, err);
    *out = st;
    return nk_take_fd(&fd);
}

int nk_place_mkdir(int dir, const char *name, mode_t mode)
{
    nk_auto_fd int fd = -1;
    struct stat st;

    if (mkdirat(dir, name, mode) < 0)
        return -errno;
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return 0; /* swapped for something else meanwhile, or not readable by its own mode */
    if ((st.st_mode & 0777) != mode && fchmod(fd, (st.st_mode & 07000) | mode) < 0)
        return -errno;
    return 0;
}

int nk_place_chmod_dir(int dir, const char *name, mode_t mode)
{
    nk_auto_fd int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char proc[40];

    if (fd < 0)
        return -errno;
    (void)snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    return chmod(proc, mode) < 0 ? -errno : 0;
}

int nk_place_enter(int dir, const char *path, size_t len)
{
    nk_auto_fd int fd = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *end = path + len;

    while (fd >= 0 && path < end) {
        char name[NK_PLACE_NAME_MAX + 1];
        const char *slash = memchr(path, '/', (size_t)(end - path));
        size_t n = (size_t)((slash ? slash : end) - path);
        int next;

        if (n >= sizeof name)
            return -ENAMETOOLONG;
        memcpy(name, path, n);
        name[n] = '\0';
        path += n + (slash ? 1 : 0);
        if (n == 0)
            continue;
        next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        (void)close(fd);
        fd = next;
    }
    return fd < 0 ? -errno : nk_take_fd(&fd);
}
