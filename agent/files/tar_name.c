#include "files/tar_name.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

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
    switch (sys) {
    case ELOOP:
        return "it goes through a link";
    case ENOTDIR:
        return "something that is no folder is in its way";
    case EISDIR:
    case ENOTEMPTY:
    case EEXIST:
        return "a folder is there already";
    case ENOENT:
        return "what it leads to is not in the folder";
    case EACCES:
    case EPERM:
    case EROFS:
        return "permission denied";
    case ENAMETOOLONG:
        return "the name is too long";
    case EINVAL:
    case EILSEQ:
        return "this file system cannot hold such a name";
    case EFBIG:
    case EOVERFLOW:
        return "the file is too large";
    case EXDEV:
    case EMLINK:
        return "such a link cannot be made";
    case EBUSY:
    case ETXTBSY:
        return "what is there is in use";
    default:
        return NULL;
    }
}
