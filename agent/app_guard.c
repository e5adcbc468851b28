/* What the start relies on must not be anybody else's to change: the binary, the options' file, and
 * every folder above them. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app_setup.h"
#include "base/scope.h"

static bool is_ours(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

/* In a sticky folder of root's, nobody can replace what is not theirs. */
static bool others_may_write(const struct stat *st)
{
    if (!is_ours(st->st_uid))
        return true;
    if (S_ISDIR(st->st_mode) && st->st_uid == 0 && (st->st_mode & S_ISVTX))
        return false;
    if (st->st_mode & S_IWOTH)
        return true;
    return (st->st_mode & S_IWGRP) && st->st_gid != 0 && st->st_gid != getegid();
}

/* `path` is absolute and without links; it is shortened to each of its folders in turn. */
static int check_path(char *path, struct nk_err *err)
{
    for (;;) {
        struct stat st;
        char *slash = strrchr(path, '/');
        const char *at = *path ? path : "/";

        if (lstat(at, &st) < 0)
            return errno == ENOENT ? 0 : nk_fail_sys(err, errno, "cannot look at %.150s", at);
        if (others_may_write(&st))
            return nk_fail(err, NK_FORBIDDEN,
                           "%.150s can be changed by others than root and nookd's own user", at);
        if (!slash)
            return 0;
        *slash = '\0';
    }
}

static int check(const char *name, struct nk_err *err)
{
    nk_auto_free char *path = realpath(name, NULL);

    return path ? check_path(path, err) : 0; /* without /proc the binary cannot be told */
}

bool nk_app_setup_has_profile(const struct nk_config *cfg)
{
    return strcmp(cfg->seccomp, "default") != 0 && strcmp(cfg->seccomp, "off") != 0;
}

int nk_app_setup_guard(const struct nk_config *cfg, struct nk_err *err)
{
    if (check("/proc/self/exe", err) < 0)
        return -1;
    if (nk_app_setup_has_profile(cfg) && check(cfg->seccomp, err) < 0)
        return -1;
    return cfg->config_file ? check(cfg->config_file, err) : 0;
}
