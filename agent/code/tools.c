#include "code/tools.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"

static bool look_at(const char *path, struct nk_tool *out)
{
    struct stat st;

    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
        return false;
    (void)snprintf(out->path, sizeof out->path, "%s", path);
    out->dev = st.st_dev;
    out->ino = st.st_ino;
    out->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    return true;
}

bool nk_tools_find(const char *name, const char *search, struct nk_tool *out)
{
    char path[NK_TOOLS_PATH_MAX];

    if (strchr(name, '/'))
        return name[0] == '/' && strlen(name) < sizeof path && look_at(name, out);
    for (const char *at = search;; at++) {
        size_t len = strcspn(at, ":");

        if (*at == '/' && len + strlen(name) + 2 <= sizeof path) {
            (void)snprintf(path, sizeof path, "%.*s/%s", (int)len, at, name);
            if (look_at(path, out))
                return true;
        }
        at += len;
        if (*at == '\0')
            return false;
    }
}

bool nk_tools_find_way(const struct nk_runtime_way *way, const char *search, struct nk_tool *out,
                       struct nk_tool *out_needs)
{
    out_needs->path[0] = '\0';
    if (way->needs && !nk_tools_find(way->needs, search, out_needs))
        return false;
    for (size_t i = 0; i < NK_COUNT(way->tools) && way->tools[i]; i++) {
        if (nk_tools_find(way->tools[i], search, out))
            return true;
    }
    return false;
}

const char *nk_tools_env(const char *const *envp, const char *name, const char *fallback)
{
    size_t len = strlen(name);

    for (; envp && *envp; envp++) {
        if (strncmp(*envp, name, len) == 0 && (*envp)[len] == '=')
            return *envp + len + 1;
    }
    return fallback;
}
