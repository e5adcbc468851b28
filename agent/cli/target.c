#include "cli/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd_io.h"
#include "base/scope.h"
#include "base/secret.h"

#define TOKEN_MAX 4096

static size_t trim(char *text, size_t len)
{
    while (len > 0 && strchr(" \t\r\n", text[len - 1]) && text[len - 1] != '\0')
        len--;
    text[len] = '\0';
    return len;
}

static bool is_visible(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f)
            return false;
    }
    return len > 0;
}

/* -errno, or how many bytes were read. */
static ssize_t read_file(const char *path, char *out, size_t max)
{
    nk_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    return fd < 0 ? -errno : nk_fd_io_read(fd, out, max);
}

static int read_token(struct nk_target *t, const char *path, struct nk_err *err)
{
    char text[TOKEN_MAX + 1];
    ssize_t n = read_file(path, text, TOKEN_MAX + 1);
    int rc = 0;
    size_t len;

    if (n < 0)
        return nk_fail_sys(err, (int)-n, "cannot read the token file %s", path);
    len = n > TOKEN_MAX ? 0 : trim(text, (size_t)n);
    t->token = is_visible(text, len) ? strndup(text, len) : NULL;
    if (!t->token && is_visible(text, len))
        rc = nk_fail_sys(err, ENOMEM, "cannot keep the token");
    else if (!t->token)
        rc = nk_fail(err, NK_BAD_REQUEST, "no usable token in %s", path);
    nk_secret_wipe(text, sizeof text);
    return rc;
}

static bool is_set(const char *value)
{
    return value && *value != '\0';
}

int nk_target_init(struct nk_target *t, const struct nk_cli_env *env, const char *socket,
                   struct nk_err *err)
{
    *t = (struct nk_target){0};
    if (socket) {
        t->client.socket = socket;
        return 0;
    }
    if (is_set(env->url)) {
        if (is_set(env->token_file) && read_token(t, env->token_file, err) < 0)
            return -1;
        t->client.url = env->url;
        t->client.token = t->token;
        return 0;
    }
    if (is_set(env->socket) && strcmp(env->socket, "none") == 0)
        return nk_fail(err, NK_BAD_REQUEST, "no socket to talk to: give --socket or NOOKD_URL");
    t->client.socket = is_set(env->socket) ? env->socket : NK_TARGET_SOCKET;
    return 0;
}

void nk_target_fini(struct nk_target *t)
{
    if (t->token)
        nk_secret_wipe(t->token, strlen(t->token));
    free(t->token);
    *t = (struct nk_target){0};
}
