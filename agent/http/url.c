#include "http/url.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "http/head.h"

static int check_escapes(const char *target, struct nk_err *err)
{
    for (const char *at = strchr(target, '%'); at; at = strchr(at + 1, '%')) {
        if (!isxdigit((unsigned char)at[1]) || !isxdigit((unsigned char)at[2]))
            return nk_fail(err, NK_BAD_REQUEST, "the URL holds a bad escape");
        if (at[1] == '0' && at[2] == '0')
            return nk_fail(err, NK_BAD_REQUEST, "the URL holds %%00");
    }
    return 0;
}

static int check_authority(const char *text, size_t len, struct nk_err *err)
{
    if (len == 0 || memchr(text, '@', len))
        return nk_fail(err, NK_BAD_REQUEST, "the URL of the request names no plain host");
    return 0;
}

/* "http://host:port/path": the authority moves in front of a NUL, over the scheme. */
static int split_absolute(char *target, char **out_path, struct nk_head *head, struct nk_err *err)
{
    char *host = strstr(target, "://") + 3;
    size_t len = strcspn(host, "/?");
    char *authority = host - 1;

    if (check_authority(host, len, err) < 0)
        return -1;
    memmove(authority, host, len);
    authority[len] = '\0';
    head->authority = authority;
    *out_path = host + len;
    return 0;
}

static bool is_absolute(const char *target)
{
    return strncasecmp(target, "http://", 7) == 0 || strncasecmp(target, "https://", 8) == 0;
}

int nk_url_split(struct nk_buf *text, struct nk_head *head, struct nk_err *err)
{
    char *target = (char *)text->data;
    char *path = target;

    if (check_escapes(target, err) < 0)
        return -1;
    if (is_absolute(target)) {
        if (split_absolute(target, &path, head, err) < 0)
            return -1;
    } else if (target[0] != '/' && !(strcmp(target, "*") == 0 && head->method == NK_OPTIONS)) {
        return nk_fail(err, NK_BAD_REQUEST, "the request target is not a path");
    }
    char *question = strchr(path, '?');

    if (question) {
        *question = '\0';
        head->queried = true;
        head->query = question + 1;
        head->query_len = strlen(head->query);
    }
    head->path = *path ? path : "/";
    return 0;
}
