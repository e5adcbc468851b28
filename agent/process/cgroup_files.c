#include "process/cgroup_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"

int nk_cgroup_files_write(int dir, const char *name, const char *text)
{
    nk_auto_fd int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
    size_t len = strlen(text);

    if (fd < 0 || write(fd, text, len) != (ssize_t)len)
        return errno ? -errno : -EIO;
    return 0;
}

int nk_cgroup_files_read(int dir, const char *name, char *out, size_t size)
{
    nk_auto_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

    if (n < 0)
        return -errno;
    out[n] = '\0';
    return 0;
}

uint64_t nk_cgroup_files_value(const char *text, const char *word)
{
    size_t len = strlen(word);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, len) == 0 && line[len] == ' ')
            return strtoull(line + len, NULL, 10);
    }
    return 0;
}

bool nk_cgroup_files_lists(const char *text, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = text; (at = strstr(at, word)); at += len)
        if ((at == text || at[-1] == ' ') && strchr(" \n", at[len]))
            return true;
    return false;
}
