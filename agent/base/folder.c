#include "base/folder.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

static int make_one(const char *path, mode_t mode)
{
    struct stat st;
    int why;

    if (mkdir(path, mode) == 0)
        return chmod(path, mode) < 0 ? -errno : 1;
    why = errno;
    if (stat(path, &st) < 0)
        return -why;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int nk_folder_make(const char *path, mode_t mode)
{
    char part[PATH_MAX];
    size_t len = strlen(path);
    int rc = 0;

    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len >= sizeof part)
        return -ENAMETOOLONG;
    memcpy(part, path, len);
    part[len] = '\0';
    for (size_t i = 1; i < len && rc >= 0; i++) {
        if (part[i] != '/')
            continue;
        part[i] = '\0';
        rc = make_one(part, 0755);
        part[i] = '/';
    }
    return rc < 0 ? rc : make_one(part, mode);
}
