#include "process/cgroup_place.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FIELD_MAX 1024 /* bytes of a path, with its end */

static const char *const controllers[NK_CGROUP_KINDS] = {
    [NK_CGROUP_UNIFIED] = "",
    [NK_CGROUP_MEMORY] = "memory",
    [NK_CGROUP_PIDS] = "pids",
};

/* Whether a list with commas has the word. */
static bool lists(const char *list, size_t len, const char *word)
{
    size_t n = strlen(word);

    for (size_t at = 0; at + n <= len; at += strcspn(list + at, ",") + 1)
        if (strncmp(list + at, word, n) == 0 && (at + n == len || list[at + n] == ','))
            return true;
    return false;
}

static const char *next_line(const char *line)
{
    line = strchr(line, '\n');
    return line && line[1] ? line + 1 : NULL;
}

/* A line of /proc/self/cgroup: "NUMBER:CONTROLLERS:PATH". The path, up to the end of the line. */
static const char *own_path(const char *groups, enum nk_cgroup_kind kind)
{
    for (const char *line = groups; line && *line; line = next_line(line)) {
        const char *list = strchr(line, ':');
        size_t len = list ? strcspn(++list, ":\n") : 0;

        if (!list || list[len] != ':')
            continue;
        if (kind == NK_CGROUP_UNIFIED ? len == 0 && line[0] == '0'
                                      : lists(list, len, controllers[kind]))
            return list + len + 1;
    }
    return NULL;
}

struct mount {
    char root[FIELD_MAX], point[FIELD_MAX];
};

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS…] - TYPE SOURCE SUPER" */
static bool read_mount(const char *line, enum nk_cgroup_kind kind, struct mount *out)
{
    const char *rest = strstr(line, " - ");
    const char *end = strchr(line, '\n');
    char type[16], super[256];

    if (!rest || (end && rest > end) ||
        sscanf(line, "%*s %*s %*s %1023s %1023s", out->root, out->point) != 2 ||
        sscanf(rest, " - %15s %*s %255s", type, super) != 2)
        return false;
    if (strchr(out->root, '\\') || strchr(out->point, '\\')) /* blanks and the like in a name */
        return false;
    if (kind == NK_CGROUP_UNIFIED)
        return strcmp(type, "cgroup2") == 0;
    return strcmp(type, "cgroup") == 0 && lists(super, strlen(super), controllers[kind]);
}

/* What of the path lies below the mount's root; NULL: it is outside. */
static const char *below(const char *path, const char *root)
{
    size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);

    if (strncmp(path, "/..", 3) == 0 || strncmp(path, root, len) != 0)
        return NULL;
    return path[len] == '/' || path[len] == '\n' || path[len] == '\0' ? path + len : NULL;
}

int nk_cgroup_place_find(const char *mounts, const char *groups, enum nk_cgroup_kind kind,
                         char *out, size_t size)
{
    const char *path = own_path(groups, kind);
    struct mount m;

    for (const char *line = path ? mounts : NULL; line && *line; line = next_line(line)) {
        const char *rest = read_mount(line, kind, &m) ? below(path, m.root) : NULL;
        size_t len = rest ? strcspn(rest, "\n") : 0;
        int n;

        if (!rest)
            continue;
        if (len == 1) /* "/" alone: the mount itself */
            len = 0;
        n = snprintf(out, size, "%s%.*s", m.point, (int)len, rest);
        return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
    }
    return -ENOENT;
}
