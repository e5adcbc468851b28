#include "code/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd_io.h"
#include "base/id.h"
#include "base/scope.h"
#include "code/tools.h"
#include "files/place.h"
#include "files/walk.h"

#define PREFIX ".nook-run-"
#define ROUNDS_MAX 5 /* when others put files into what is being removed */
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

void nk_run_folder_init(struct nk_run_folder *f)
{
    char id[NK_ID_MAX];

    nk_id_new(id);
    (void)snprintf(f->name, sizeof f->name, PREFIX "%s", id);
    f->dir = -1;
}

void nk_run_folder_fini(struct nk_run_folder *f)
{
    nk_close_fd(&f->dir);
    nk_walk_free(f->tree);
    free(f->top);
    free(f->path);
    f->tree = NULL;
    f->top = f->path = NULL;
}

static int set_paths(struct nk_run_folder *f, const char *top)
{
    size_t size = strlen(top) + sizeof f->name + 1;

    if (size > NK_RUN_FOLDER_PATH)
        return -ENAMETOOLONG;
    f->top = strdup(top);
    f->path = malloc(size);
    if (!f->top || !f->path)
        return -ENOMEM;
    (void)snprintf(f->path, size, "%s/%s", top, f->name);
    return 0;
}

static int make_in(struct nk_run_folder *f, const char *top)
{
    nk_auto_fd int parent = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc;

    if (parent < 0)
        return -errno;
    rc = set_paths(f, top);
    if (rc == 0)
        rc = nk_place_mkdir(parent, f->name, 0700);
    if (rc < 0) {
        nk_run_folder_fini(f);
        return rc;
    }
    f->dir = openat(parent, f->name, DIR_FLAGS);
    if (f->dir < 0)
        return -errno;
    (void)flock(f->dir, LOCK_SH | LOCK_NB);
    return 0;
}

int nk_run_folder_make(struct nk_run_folder *f, const char *const *tops, struct nk_err *err)
{
    int rc = -ENOENT;

    for (; *tops; tops++) {
        rc = make_in(f, *tops);
        if (rc == 0 || f->top)
            break;
    }
    return rc < 0 ? nk_fail_sys(err, -rc, "cannot make a folder for the code") : 0;
}

int nk_run_folder_write(struct nk_run_folder *f, const char *name, const char *front,
                        const void *text, size_t len, struct nk_err *err)
{
    nk_auto_fd int fd =
        openat(f->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = fd < 0 ? -errno : 0;

    if (rc == 0 && fchmod(fd, 0600) < 0)
        rc = -errno;
    if (rc == 0 && front)
        rc = nk_fd_io_write(fd, front, strlen(front));
    if (rc == 0)
        rc = nk_fd_io_write(fd, text, len);
    return rc < 0 ? nk_fail_sys(err, -rc, "cannot write the code") : 0;
}

void nk_run_folder_link(struct nk_run_folder *f, const char *cwd)
{
    DIR *dir = opendir(cwd);
    unsigned count = 0;
    char target[NK_PLACE_PATH_MAX];

    if (!dir)
        return;
    for (struct dirent *e = readdir(dir); e && count < NK_RUN_FOLDER_LINKS; e = readdir(dir)) {
        int n = snprintf(target, sizeof target, "%s/%s", cwd, e->d_name);

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || n >= (int)sizeof target)
            continue;
        count += symlinkat(target, f->dir, e->d_name) == 0;
    }
    (void)closedir(dir);
}

static int open_again(const struct nk_run_folder *f, int parent)
{
    int fd = openat(parent, f->name, DIR_FLAGS);

    if (fd < 0 && errno == EACCES && nk_place_chmod_dir(parent, f->name, 0700) == 0)
        fd = openat(parent, f->name, DIR_FLAGS);
    return fd < 0 ? -errno : fd;
}

/* What is no folder, without any memory: mostly that is all there is. */
static void unlink_plain(int fd)
{
    _Alignas(8) uint8_t buf[4096];
    long n;

    (void)fchmod(fd, 0700);
    while ((n = syscall(SYS_getdents64, fd, buf, sizeof buf)) > 0) {
        for (long at = 0; at < n;) {
            const struct dirent64 *e = (const struct dirent64 *)(const void *)(buf + at);

            (void)unlinkat(fd, e->d_name, 0);
            at += e->d_reclen;
        }
    }
}

static int begin_clear(struct nk_run_folder *f, int parent)
{
    int fd = open_again(f, parent);

    if (fd < 0)
        return fd;
    return nk_walk_new(fd, &(struct nk_walk_options){.force = true, .tolerant = true}, &f->tree);
}

/* 1: later more, 0: as empty as it gets. */
static int empty(struct nk_run_folder *f, uint64_t until_ns)
{
    struct nk_walk_entry e;
    int rc;

    while ((rc = nk_walk_next(f->tree, until_ns, &e)) != 0) {
        if (rc == -EAGAIN)
            return 1;
        if (rc > 0 && (e.leaving || !S_ISDIR(e.st.st_mode)))
            (void)unlinkat(e.dir, e.name, e.leaving ? AT_REMOVEDIR : 0);
        if (rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE)
            break;
    }
    nk_walk_free(f->tree);
    f->tree = NULL;
    return 0;
}

static bool is_gone(const struct nk_run_folder *f, int parent)
{
    return unlinkat(parent, f->name, AT_REMOVEDIR) == 0 || errno != ENOTEMPTY;
}

static int clear_quickly(const struct nk_run_folder *f, int parent)
{
    nk_auto_fd int fd = open_again(f, parent);

    if (fd >= 0)
        unlink_plain(fd);
    return fd < 0 ? fd : 0;
}

/* 1: later more, 0: it is gone, or -errno: not now. */
static int clear_all(struct nk_run_folder *f, int parent, uint64_t until_ns)
{
    int rc = f->tree || f->rounds > 0 ? 0 : clear_quickly(f, parent);

    if (rc < 0)
        return rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP ? 0 : rc;
    while (f->tree || !is_gone(f, parent)) {
        if (!f->tree)
            rc = f->rounds++ < ROUNDS_MAX ? begin_clear(f, parent) : -ENOTEMPTY;
        if (rc < 0)
            return rc;
        if (empty(f, until_ns) > 0)
            return 1;
    }
    return 0;
}

int nk_run_folder_clear(struct nk_run_folder *f, uint64_t until_ns)
{
    nk_auto_fd int parent = -1;
    int rc;

    nk_close_fd(&f->dir);
    if (!f->top)
        return 0;
    parent = open(f->top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    rc = parent < 0 ? -errno : clear_all(f, parent, until_ns);
    if (rc > 0)
        return 1;
    if (rc == 0)
        nk_run_folder_fini(f);
    return 0;
}

bool nk_run_folder_is_name(const char *name)
{
    const size_t prefix = sizeof PREFIX - 1;
    size_t len = strlen(name);

    return strncmp(name, PREFIX, prefix) == 0 && len == prefix + NK_ID_MAX - 1 &&
           strspn(name + prefix, "abcdefghijkmnpqrstuvwxyz23456789") == len - prefix;
}

/* What cannot be locked may well be in use. */
bool nk_run_folder_is_held(int top, const char *name)
{
    nk_auto_fd int fd = openat(top, name, DIR_FLAGS);

    return fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0;
}

int nk_run_folder_adopt(struct nk_run_folder *f, const char *top, const char *name)
{
    int rc;

    *f = (struct nk_run_folder){.dir = -1};
    (void)snprintf(f->name, sizeof f->name, "%s", name);
    rc = set_paths(f, top);
    if (rc < 0)
        nk_run_folder_fini(f);
    return rc;
}

/* Whether it can be written to, or made. */
static bool is_usable(const char *path)
{
    char parent[NK_RUN_FOLDER_PATH];
    char *slash;

    if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0)
        return true;
    if (errno != ENOENT)
        return false;
    (void)snprintf(parent, sizeof parent, "%s", path);
    slash = strrchr(parent, '/');
    if (!slash || slash == parent)
        return false;
    *slash = '\0';
    return faccessat(AT_FDCWD, parent, W_OK | X_OK, AT_EACCESS) == 0;
}

/* One that is there must be ours: others may make names in a folder for temporary files too. */
static bool make_cache(const char *path)
{
    struct stat st;

    if (mkdir(path, 0700) == 0)
        return true;
    return errno == EEXIST && lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

void nk_run_folder_cache(const struct nk_run_folder *f, const char *const *envp,
                         char out[NK_RUN_FOLDER_PATH])
{
    const char *xdg = nk_tools_env(envp, "XDG_CACHE_HOME", "");
    const char *home = nk_tools_env(envp, "HOME", "");
    int n = snprintf(out, NK_RUN_FOLDER_PATH, "%s", xdg);

    if (xdg[0] == '/' && n < NK_RUN_FOLDER_PATH)
        return;
    n = snprintf(out, NK_RUN_FOLDER_PATH, "%s/.cache", home);
    if (home[0] == '/' && n < NK_RUN_FOLDER_PATH && is_usable(out))
        return;
    n = snprintf(out, NK_RUN_FOLDER_PATH, "%s/.nook-cache-%u", f->top, geteuid());
    if (n < NK_RUN_FOLDER_PATH && make_cache(out))
        return;
    (void)snprintf(out, NK_RUN_FOLDER_PATH, "%s", f->path);
}
