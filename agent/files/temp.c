#include "files/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/id.h"

#define BEFORE ".nook-"
#define BEHIND ".part"

void nk_temp_name(char out[NK_TEMP_MAX])
{
    char id[NK_ID_MAX];

    nk_id_new(id);
    (void)snprintf(out, NK_TEMP_MAX, BEFORE "%s" BEHIND, id);
}

bool nk_temp_is(const char *name)
{
    size_t len = strlen(name);
    size_t want = sizeof BEFORE - 1 + NK_ID_MAX - 1 + sizeof BEHIND - 1;

    return len == want && strncmp(name, BEFORE, sizeof BEFORE - 1) == 0 &&
           strcmp(name + len - (sizeof BEHIND - 1), BEHIND) == 0;
}

/* A link to a file fails by itself when the name is taken, and shows to a watcher as a new file. Of
 * a folder there is none: where the kernel cannot rename without replacing, a look must do. */
static int settle_new(int dir, const char *temp, const char *name)
{
    struct stat st;

    if (linkat(dir, temp, dir, name, 0) == 0)
        return unlinkat(dir, temp, 0) < 0 ? -errno : 0;
    if (errno == EEXIST)
        return -EEXIST;
    if (renameat2(dir, temp, dir, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(dir, temp, dir, name) < 0 ? -errno : 0;
}

/* What is in the way goes aside for a moment, and takes the temporary name at the end. */
static int swap_by_hand(int dir, const char *temp, const char *name)
{
    char aside[NK_TEMP_MAX + 2];

    (void)snprintf(aside, sizeof aside, "%s~", temp);
    if (renameat(dir, name, dir, aside) < 0)
        return -errno;
    if (renameat(dir, temp, dir, name) < 0) {
        int rc = -errno;

        (void)renameat(dir, aside, dir, name);
        return rc;
    }
    return renameat(dir, aside, dir, temp) < 0 ? -errno : 0;
}

int nk_temp_settle(int dir, const char *temp, const char *name, bool replace, bool *out_old)
{
    int rc;

    *out_old = false;
    if (!replace)
        return settle_new(dir, temp, name);
    if (renameat(dir, temp, dir, name) == 0)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST && errno != EISDIR && errno != ENOTDIR)
        return -errno;
    rc = renameat2(dir, temp, dir, name, RENAME_EXCHANGE) < 0 ? -errno : 0;
    if (rc == -EINVAL || rc == -ENOSYS)
        rc = swap_by_hand(dir, temp, name);
    *out_old = rc == 0;
    return rc;
}
