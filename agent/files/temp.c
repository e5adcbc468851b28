#include "files/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/id.h"
#include "base/scope.h"

#define BEFORE ".nook-"
#define BEHIND ".part"
#define TRIES 3

void nk_temp_name(char out[NK_TEMP_MAX])
{
    char id[NK_ID_MAX];

    nk_id_new(id);
    (void)snprintf(out, NK_TEMP_MAX, BEFORE "%s" BEHIND, id);
}

bool nk_temp_is(const char *name)
{
    size_t len = strlen(name);
    size_t want = sizeof BEFORE - 1 + NK_ID_MAX - 1 + sizeof BEHIND - 1;

    return len == want && strncmp(name, BEFORE, sizeof BEFORE - 1) == 0 &&
           strcmp(name + len - (sizeof BEHIND - 1), BEHIND) == 0;
}

int nk_temp_nameless(int dir)
{
    /* A name is given through it. */
    return access("/proc/self/fd", F_OK) < 0 ? -EOPNOTSUPP : nk_temp_open_nameless(dir, 0600);
}

int nk_temp_open_nameless(int dir, mode_t mode)
{
    int fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);

    if (fd >= 0)
        return fd;
    /* What else is said by kernels and file systems that do not know it. */
    return errno == EISDIR || errno == EINVAL || errno == ENOENT ? -EOPNOTSUPP : -errno;
}

int nk_temp_give_name(int fd, int dir, const char *name)
{
    char self[32];

    /* The short way, where the kernel lets one do that with a file that one has made. */
    if (linkat(fd, "", dir, name, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != ENOENT && errno != EINVAL && errno != EPERM && errno != ENOSYS)
        return -errno;
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

int nk_temp_hold(int fd)
{
    struct stat st;

    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EAGAIN : 0; /* a file system without locks */
    return fstat(fd, &st) == 0 && st.st_nlink == 0 ? -EAGAIN : 0;
}

int nk_temp_create(int dir, const char *name)
{
    int rc = -EAGAIN;

    for (int i = 0; i < TRIES && rc == -EAGAIN; i++) {
        nk_auto_fd int fd =
            openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

        rc = fd < 0 ? -errno : nk_temp_hold(fd);
        if (rc == 0)
            return nk_take_fd(&fd);
    }
    return rc;
}

bool nk_temp_is_left(int dir, const char *name)
{
    nk_auto_fd int fd =
        openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* A link to a file fails by itself when the name is taken, and shows to a watcher as a new file. Of
 * a folder there is none: where the kernel cannot rename without replacing, a look must do. */
static int settle_new(int dir, const char *temp, const char *name)
{
    struct stat st;

    if (linkat(dir, temp, dir, name, 0) == 0)
        return unlinkat(dir, temp, 0) < 0 ? -errno : 0;
    if (errno == EEXIST)
        return -EEXIST;
    if (renameat2(dir, temp, dir, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(dir, temp, dir, name) < 0 ? -errno : 0;
}

/* What is in the way goes aside for a moment, and takes the temporary name at the end. */
static int swap_by_hand(int dir, const char *temp, const char *name)
{
    char aside[NK_TEMP_MAX + 2];

    (void)snprintf(aside, sizeof aside, "%s~", temp);
    if (renameat(dir, name, dir, aside) < 0)
        return -errno;
    if (renameat(dir, temp, dir, name) < 0) {
        int rc = -errno;

        (void)renameat(dir, aside, dir, name);
        return rc;
    }
    return renameat(dir, aside, dir, temp) < 0 ? -errno : 0;
}

int nk_temp_settle(int dir, const char *temp, const char *name, bool replace, bool *out_old)
{
    int rc;

    *out_old = false;
    if (!replace)
        return settle_new(dir, temp, name);
    if (renameat(dir, temp, dir, name) == 0)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST && errno != EISDIR && errno != ENOTDIR)
        return -errno;
    rc = renameat2(dir, temp, dir, name, RENAME_EXCHANGE) < 0 ? -errno : 0;
    if (rc == -EINVAL || rc == -ENOSYS)
        rc = swap_by_hand(dir, temp, name);
    *out_old = rc == 0;
    return rc;
}
