#include "files/tar_name.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/attr.h"

static const char *add_part(char *out, size_t *len, const char *part, size_t n)
{
    if (n > NK_TAR_NAME_PART)
        return "a part of the name is too long";
    if (n == 2 && part[0] == '.' && part[1] == '.')
        return "the name has a .. in it";
    if (*len + n + 1 > NK_TAR_NAME_MAX)
        return "the name is too long";
    if (*len > 0)
        out[(*len)++] = '/';
    memcpy(out + *len, part, n);
    *len += n;
    out[*len] = '\0';
    return NULL;
}

const char *nk_tar_name_clean(const char *name, char out[NK_TAR_NAME_MAX + 1])
{
    const char *reason = NULL;
    unsigned depth = 0;
    size_t len = 0;

    out[0] = '\0';
    if (name[0] == '\0')
        return "the name is empty";
    if (name[0] == '/')
        return "the name is absolute";
    for (const char *s = name; *s && !reason; s += strspn(s, "/")) {
        size_t n = strcspn(s, "/");

        if (n > 0 && !(n == 1 && s[0] == '.')) {
            reason = add_part(out, &len, s, n);
            if (++depth > NK_TAR_NAME_DEPTH && !reason)
                reason = "too many folders deep";
        }
        s += n;
    }
    return reason;
}

const char *nk_tar_name_reason(int sys)
{
    static const struct {
        int sys;
        const char *reason;
    } reasons[] = {
        {ELOOP, "it goes through a link"},
        {ENOTDIR, "something that is no folder is in its way"},
        {EISDIR, "a folder is there already"},
        {ENOTEMPTY, "a folder is there already"},
        {EEXIST, "a folder is there already"},
        {ENOENT, "what it leads to is not in the folder"},
        {EACCES, "permission denied"},
        {EPERM, "permission denied"},
        {EROFS, "permission denied"},
        {ENAMETOOLONG, "the name is too long"},
        {EINVAL, "this file system cannot hold such a name"},
        {EILSEQ, "this file system cannot hold such a name"},
        {EFBIG, "the file is too large"},
        {EOVERFLOW, "the file is too large"},
        {EXDEV, "such a link cannot be made"},
        {EMLINK, "such a link cannot be made"},
        {EBUSY, "what is there is in use"},
        {ETXTBSY, "what is there is in use"},
    };

    for (size_t i = 0; i < NK_COUNT(reasons); i++) {
        if (reasons[i].sys == sys)
            return reasons[i].reason;
    }
    return NULL;
}
