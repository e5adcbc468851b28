#include "tenant/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/folder.h"
#include "base/id.h"
#include "base/job.h"
#include "base/scope.h"
#include "files/place.h"

#define HALF ".new-" /* of names of workspaces that are being made */
#define NAME_SIZE 64
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define PASS_THROUGH 0711

const char *const nk_state_folders[] = {"files", "out", "tmp", NULL};

/* Of what may lie in one that no identity has used yet. */
static bool is_harmless(const char *name)
{
    static const char *const names[] = {".", "..", "lost+found", "lifetime", "lifetime.new"};

    for (size_t i = 0; i < NK_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Whether somebody else keeps things there: "lock" is what we made first. */
static bool is_used(int fd)
{
    int own = openat(fd, ".", DIR_FLAGS);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    struct dirent *e = NULL;

    if (!dir) {
        nk_close_fd(&own);
        return true;
    }
    if (faccessat(fd, "lock", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        while ((e = readdir(dir)) && is_harmless(e->d_name))
            continue;
    (void)closedir(dir);
    return e != NULL;
}

/* Its mode is about to be changed: of a folder like /tmp that would shut everybody out. */
static int check_ours(int fd, const char *path, struct nk_err *err)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return nk_fail_sys(err, errno, "cannot open the state folder %.150s", path);
    if ((st.st_mode & 07777) == PASS_THROUGH)
        return 0;
    if ((st.st_mode & 07222) != S_IWUSR || is_used(fd))
        return nk_fail(err, NK_FORBIDDEN, "the state folder %.150s is not nookd's alone", path);
    return 0;
}

/* A folder of our own that others may pass through, and no more. */
static int claim(int fd, const char *name, struct nk_err *err)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return nk_fail_sys(err, errno, "cannot open the state folder %.150s", name);
    if (st.st_uid != geteuid())
        return nk_fail(err, NK_FORBIDDEN, "the state folder %.150s belongs to uid %u", name,
                       (unsigned)st.st_uid);
    if ((st.st_mode & 07777) != PASS_THROUGH && fchmod(fd, PASS_THROUGH) < 0)
        return nk_fail_sys(err, errno, "cannot change the mode of the state folder %.150s", name);
    return 0;
}

int nk_state_open(const char *path, struct nk_state *out, struct nk_err *err)
{
    struct nk_state s = {-1, -1, -1, false};
    int rc = nk_folder_make(path, PASS_THROUGH);

    if (rc < 0)
        return nk_fail_sys(err, -rc, "cannot make the state folder %.150s", path);
    s.dir = open(path, DIR_FLAGS);
    if (check_ours(s.dir, path, err) < 0 || claim(s.dir, path, err) < 0)
        goto failed;
    if (mkdirat(s.dir, "w", PASS_THROUGH) < 0 && errno != EEXIST) {
        (void)nk_fail_sys(err, errno, "cannot make the workspaces' folder");
        goto failed;
    }
    s.workspaces = openat(s.dir, "w", DIR_FLAGS);
    if (claim(s.workspaces, "w", err) < 0)
        goto failed;
    s.lock = openat(s.dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s.lock < 0) {
        (void)nk_fail_sys(err, errno, "cannot open the lock of the state folder");
        goto failed;
    }
    *out = s;
    return 0;
failed:
    nk_state_close(&s);
    return -1;
}

void nk_state_close(struct nk_state *s)
{
    nk_close_fd(&s->dir);
    nk_close_fd(&s->workspaces);
    nk_close_fd(&s->lock);
}

void nk_state_try_alone(struct nk_state *s)
{
    s->alone = flock(s->lock, LOCK_EX | LOCK_NB) == 0;
}

int nk_state_share(const struct nk_state *s)
{
    while (flock(s->lock, LOCK_SH) < 0)
        if (errno != EINTR)
            return -errno;
    return 0;
}

static int make_folders(int top, const struct nk_creds *as)
{
    for (const char *const *name = nk_state_folders; *name; name++) {
        int rc = nk_place_mkdir(top, *name, 0700);

        if (rc == 0 && fchownat(top, *name, as->uid, as->gid, AT_SYMLINK_NOFOLLOW) < 0)
            rc = -errno;
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void remove_half(int workspaces, const char *name)
{
    nk_auto_fd int top = openat(workspaces, name, DIR_FLAGS);

    for (const char *const *at = nk_state_folders; top >= 0 && *at; at++)
        (void)unlinkat(top, *at, AT_REMOVEDIR);
    (void)unlinkat(workspaces, name, AT_REMOVEDIR);
}

/* Only when it is whole does it get its name, and its user reaches it by that name only. */
static int make(int workspaces, const char *name, const struct nk_creds *as)
{
    nk_auto_fd int top = -1;
    char half[NAME_SIZE], id[NK_ID_MAX];
    int rc;

    nk_id_new(id);
    (void)snprintf(half, sizeof half, HALF "%s-%s", name, id);
    rc = nk_place_mkdir(workspaces, half, 0700);
    if (rc < 0)
        return rc;
    top = openat(workspaces, half, DIR_FLAGS);
    rc = top < 0 ? -errno : make_folders(top, as);
    if (rc == 0 && fchown(top, as->uid, as->gid) < 0)
        rc = -errno;
    if (rc == 0 && renameat(workspaces, half, workspaces, name) < 0)
        rc = errno == ENOTEMPTY || errno == EEXIST ? -EEXIST : -errno;
    if (rc < 0)
        remove_half(workspaces, half);
    return rc;
}

/* What its user has removed of it comes back, with the user's own rights. */
static int restore(int top, const struct nk_creds *as)
{
    int rc = nk_job_become(as);

    if (rc < 0)
        return rc;
    for (const char *const *name = nk_state_folders; *name; name++)
        (void)nk_place_mkdir(top, *name, 0700);
    nk_job_restore();
    return 0;
}

static int adopt(int workspaces, const char *name, const struct nk_creds *as, struct nk_err *err)
{
    nk_auto_fd int top = openat(workspaces, name, DIR_FLAGS);
    struct stat st;
    int rc;

    if (top < 0 || fstat(top, &st) < 0)
        return nk_fail_sys(err, errno, "cannot open the workspace");
    if (st.st_uid != as->uid)
        return nk_fail(err, NK_INTERNAL, "the workspace of uid %s belongs to uid %u", name,
                       (unsigned)st.st_uid);
    if ((st.st_mode & 07777) != 0700 && fchmod(top, 0700) < 0)
        return nk_fail_sys(err, errno, "cannot close the workspace to others");
    rc = restore(top, as);
    return rc < 0 ? nk_fail_sys(err, -rc, "cannot act as uid %s", name) : 0;
}

int nk_state_workspace(const struct nk_state *s, const struct nk_creds *as, struct nk_err *err)
{
    char name[16];
    int rc = 0;

    (void)snprintf(name, sizeof name, "%u", (unsigned)as->uid);
    if (!nk_state_has(s, as->uid))
        rc = make(s->workspaces, name, as);
    if (rc < 0 && rc != -EEXIST)
        return nk_fail_sys(err, -rc, "cannot make the workspace");
    return adopt(s->workspaces, name, as, err);
}

bool nk_state_has(const struct nk_state *s, uid_t uid)
{
    char name[16];
    struct stat st;

    (void)snprintf(name, sizeof name, "%u", (unsigned)uid);
    return fstatat(s->workspaces, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

void nk_state_tidy(const struct nk_state *s)
{
    int again = openat(s->workspaces, ".", DIR_FLAGS);
    DIR *dir = again < 0 ? NULL : fdopendir(again);
    struct dirent *e;

    if (!dir) {
        nk_close_fd(&again);
        return;
    }
    while ((e = readdir(dir)))
        if (strncmp(e->d_name, HALF, strlen(HALF)) == 0)
            remove_half(s->workspaces, e->d_name);
    (void)closedir(dir);
}
