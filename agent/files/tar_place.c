#include "files/tar_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define TRIES 100 /* names of our own that somebody else has taken */

int nk_tar_place_enter(struct nk_tar_way *way, const char *path, bool make,
                       struct nk_tar_place *out)
{
    int dir = nk_tar_way_enter(way, path, make, &out->name);

    if (dir < 0)
        return dir;
    out->dir = dir;
    out->temp[0] = '\0';
    return 0;
}

int nk_tar_place_open(struct nk_tar_place *p, bool nameless, mode_t mode)
{
    int fd = nameless ? nk_temp_open_nameless(p->dir, mode) : -1;

    p->temp[0] = '\0';
    if (fd >= 0 || (nameless && (fd == -ENOSPC || fd == -EDQUOT)))
        return fd;
    for (int i = 0; i < TRIES; i++) {
        nk_temp_name(p->temp);
        fd = nk_temp_create(p->dir, p->temp);
        if (fd >= 0)
            return fd;
        if (fd != -EEXIST)
            break;
    }
    p->temp[0] = '\0';
    return fd;
}

bool nk_tar_place_probe(int dest)
{
    struct nk_tar_place p = {.dir = dest};
    nk_auto_fd int fd = nk_temp_open_nameless(dest, 0600);

    if (fd < 0)
        return false;
    nk_temp_name(p.temp);
    if (nk_temp_give_name(fd, dest, p.temp) < 0)
        return false;
    (void)unlinkat(dest, p.temp, 0);
    return true;
}

void nk_tar_place_drop(struct nk_tar_place *p)
{
    if (p->temp[0] != '\0')
        (void)unlinkat(p->dir, p->temp, 0);
    p->temp[0] = '\0';
}

static int rename_temp(struct nk_tar_place *p)
{
    int rc = renameat(p->dir, p->temp, p->dir, p->name) < 0 ? -errno : 0;

    if (rc < 0)
        nk_tar_place_drop(p);
    p->temp[0] = '\0';
    return rc;
}

int nk_tar_place_commit(struct nk_tar_place *p, int fd)
{
    int rc;

    if (p->temp[0] != '\0')
        return rename_temp(p);
    rc = nk_temp_give_name(fd, p->dir, p->name);
    if (rc != -EEXIST)
        return rc;
    nk_temp_name(p->temp);
    rc = nk_temp_give_name(fd, p->dir, p->temp);
    return rc < 0 ? rc : rename_temp(p);
}

static int make_symlink(const struct nk_tar_place *p, const char *target, const char *name,
                        const struct timespec *mtime)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, *mtime};

    if (symlinkat(target, p->dir, name) < 0)
        return -errno;
    (void)utimensat(p->dir, name, times, AT_SYMLINK_NOFOLLOW);
    return 0;
}

int nk_tar_place_symlink(struct nk_tar_place *p, const char *target, const struct timespec *mtime)
{
    int rc = make_symlink(p, target, p->name, mtime);

    if (rc != -EEXIST)
        return rc;
    nk_temp_name(p->temp);
    rc = make_symlink(p, target, p->temp, mtime);
    return rc < 0 ? rc : rename_temp(p);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* What was looked at and what was linked may be two things: a folder is not ours alone. */
static int make_link(const struct nk_tar_place *from, const struct stat *meant,
                     const struct nk_tar_place *p, const char *name)
{
    struct stat st;

    if (linkat(from->dir, from->name, p->dir, name, 0) < 0)
        return -errno;
    if (fstatat(p->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&st, meant))
        return 0;
    (void)unlinkat(p->dir, name, 0);
    return -EPERM;
}

/* A rename between two names of one file does nothing, so the name of our own may be left. */
static int replace_by_link(const struct nk_tar_place *from, const struct stat *meant,
                           struct nk_tar_place *p)
{
    int rc;

    nk_temp_name(p->temp);
    rc = make_link(from, meant, p, p->temp);
    if (rc < 0)
        return rc;
    if (renameat(p->dir, p->temp, p->dir, p->name) < 0)
        rc = -errno;
    nk_tar_place_drop(p);
    return rc;
}

int nk_tar_place_hardlink(struct nk_tar_place *p, struct nk_tar_way *way, const char *target)
{
    struct nk_tar_place from;
    struct stat st;
    int rc = nk_tar_place_enter(way, target, false, &from);

    if (rc < 0)
        return rc;
    if (fstatat(from.dir, from.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        rc = -errno;
    else if (S_ISLNK(st.st_mode))
        rc = -ELOOP;
    else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
        rc = -EPERM;
    else
        rc = make_link(&from, &st, p, p->name);
    if (rc == -EEXIST)
        rc = replace_by_link(&from, &st, p);
    return rc;
}

/* So that it can be filled; its mode is set at the end. */
static int use_dir(const struct nk_tar_place *p)
{
    nk_auto_fd int fd = openat(p->dir, p->name, DIR_FLAGS);
    struct stat st;

    if (fd < 0)
        return errno == ENOTDIR || errno == ELOOP ? nk_tar_way_no_folder(p->dir, p->name) : 1;
    if (fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
        (void)fchmod(fd, (st.st_mode & 07777) | 0700);
    return 1;
}

int nk_tar_place_mkdir(struct nk_tar_place *p, mode_t mode)
{
    if (mkdirat(p->dir, p->name, (mode & 0777) | 0700) == 0)
        return 0;
    return errno == EEXIST ? use_dir(p) : -errno;
}

int nk_tar_place_set_dir(struct nk_tar_place *p, mode_t mode, const struct timespec *mtime)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, *mtime};
    nk_auto_fd int fd = openat(p->dir, p->name, DIR_FLAGS);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (futimens(fd, times) < 0)
        return -errno;
    /* Special bits are never an archive's, but a folder may have had its own. */
    if ((st.st_mode & 0777) != (mode & 0777) &&
        fchmod(fd, (st.st_mode & 07000) | (mode & 0777)) < 0)
        return -errno;
    return 0;
}
