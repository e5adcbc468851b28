/* The bearer token: read, or made; never in argv, the environment of a command, or the log. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app_setup.h"
#include "base/folder.h"
#include "base/id.h"
#include "base/scope.h"

#define TOKEN_MAX 4096

/* Whether the user of commands could read a file with this state. */
static bool readable_by(const struct stat *st, const struct nk_user *user)
{
    const struct nk_creds *c = &user->creds;

    if (c->uid == geteuid())
        return false; /* the same uid: nothing can be kept from it, and the start says so */
    if (st->st_uid == c->uid)
        return true;
    if (st->st_mode & S_IROTH)
        return true;
    if (!(st->st_mode & S_IRGRP))
        return false;
    if (st->st_gid == c->gid)
        return true;
    for (size_t i = 0; i < c->group_count; i++)
        if (st->st_gid == c->groups[i])
            return true;
    return false;
}

static int use(char *text, size_t len, const char *from, struct nk_secret *out, struct nk_err *err)
{
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    if (len == 0)
        return nk_fail(err, NK_BAD_REQUEST, "%s: the token is empty", from);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f)
            return nk_fail(err, NK_BAD_REQUEST, "%s: a token is visible ASCII", from);
    nk_secret_set(out, text, len);
    return 0;
}

static int read_token(int fd, const char *from, struct nk_secret *out, struct nk_err *err)
{
    char text[TOKEN_MAX];
    size_t len = 0;
    ssize_t n;
    int rc;

    while (len < sizeof text && (n = read(fd, text + len, sizeof text - len)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return nk_fail_sys(err, errno, "%s: cannot read the token", from);
        len += (size_t)n;
    }
    rc = len < sizeof text ? use(text, len, from, out, err)
                           : nk_fail(err, NK_BAD_REQUEST, "%s: the token is too long", from);
    nk_secret_wipe(text, sizeof text);
    return rc;
}

static int read_file(const struct nk_config *cfg, const struct nk_user *user, struct nk_secret *out,
                     struct nk_err *err)
{
    nk_auto_fd int fd = open(cfg->token_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return nk_fail_sys(err, errno, "cannot open the token file %s", cfg->token_file);
    if (!S_ISREG(st.st_mode))
        return nk_fail(err, NK_BAD_REQUEST, "the token file %s is not a file", cfg->token_file);
    if (readable_by(&st, user))
        return nk_fail(err, NK_FORBIDDEN, "the token file %s can be read by the user of commands",
                       cfg->token_file);
    return read_token(fd, cfg->token_file, out, err);
}

static void make_folder(const char *file)
{
    char folder[4096];
    const char *slash = strrchr(file, '/');
    size_t n = slash ? (size_t)(slash - file) : 0;

    if (n == 0 || n >= sizeof folder)
        return;
    memcpy(folder, file, n);
    folder[n] = '\0';
    (void)nk_folder_make(folder, 0700); /* else the write tells */
}

static int write_new(const struct nk_config *cfg, const char *text, struct nk_err *err)
{
    nk_auto_fd int fd = -1;
    size_t len = strlen(text);

    make_folder(cfg->token_file);
    (void)unlink(cfg->token_file); /* of an earlier start */
    fd = open(cfg->token_file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
    if (fd < 0 || write(fd, text, len) != (ssize_t)len)
        return nk_fail_sys(err, errno, "cannot write a token to %s", cfg->token_file);
    return 0;
}

static int make_token(const struct nk_config *cfg, struct nk_secret *out, struct nk_err *err)
{
    char text[2 * NK_ID_MAX];
    int rc;

    nk_id_new(text);
    nk_id_new(text + strlen(text));
    rc = write_new(cfg, text, err);
    if (rc == 0)
        nk_secret_set(out, text, strlen(text));
    nk_secret_wipe(text, sizeof text);
    return rc;
}

int nk_app_setup_token(const struct nk_config *cfg, const struct nk_user *user,
                       struct nk_secret *out, struct nk_err *err)
{
    if (cfg->token)
        return use(cfg->token, strlen(cfg->token), "NOOKD_TOKEN", out, err);
    if (cfg->token_fd >= 0)
        return read_token(cfg->token_fd, "--token-fd", out, err);
    if (cfg->token_given)
        return read_file(cfg, user, out, err);
    if (cfg->listen.count == 0 || cfg->no_auth)
        return 0;
    return make_token(cfg, out, err);
}
