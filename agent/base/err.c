#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* The longest reason libc knows is about 50 bytes; the sentence leaves it this much. */
#define REASON_ROOM 64

static const struct {
    int sys;
    enum nk_code code;
} codes[] = {
    {ENOENT, NK_NOT_FOUND},
    {EACCES, NK_FORBIDDEN},
    {EPERM, NK_FORBIDDEN},
    {EROFS, NK_FORBIDDEN},
    {ENOSPC, NK_NO_SPACE},
    {EDQUOT, NK_QUOTA_EXCEEDED},
    {ENOMEM, NK_OVERLOADED},
    {EMFILE, NK_OVERLOADED},
    {ENFILE, NK_OVERLOADED},
    {EAGAIN, NK_OVERLOADED},
    {EEXIST, NK_EXISTS},
    {ENOTEMPTY, NK_NOT_EMPTY},
    {ELOOP, NK_BAD_PATH},
    {ENAMETOOLONG, NK_BAD_PATH},
    {ENOTDIR, NK_BAD_PATH},
    {ENOSYS, NK_NOT_SUPPORTED},
    {EOPNOTSUPP, NK_NOT_SUPPORTED},
};

static const struct {
    int sys;
    const char *name;
} names[] = {
    {E2BIG, "E2BIG"},
    {EACCES, "EACCES"},
    {EADDRINUSE, "EADDRINUSE"},
    {EADDRNOTAVAIL, "EADDRNOTAVAIL"},
    {EAGAIN, "EAGAIN"},
    {EBADF, "EBADF"},
    {EBUSY, "EBUSY"},
    {ECANCELED, "ECANCELED"},
    {ECHILD, "ECHILD"},
    {ECONNABORTED, "ECONNABORTED"},
    {ECONNREFUSED, "ECONNREFUSED"},
    {ECONNRESET, "ECONNRESET"},
    {EDOM, "EDOM"},
    {EDQUOT, "EDQUOT"},
    {EEXIST, "EEXIST"},
    {EFAULT, "EFAULT"},
    {EFBIG, "EFBIG"},
    {EHOSTUNREACH, "EHOSTUNREACH"},
    {EILSEQ, "EILSEQ"},
    {EINPROGRESS, "EINPROGRESS"},
    {EINTR, "EINTR"},
    {EINVAL, "EINVAL"},
    {EIO, "EIO"},
    {EISDIR, "EISDIR"},
    {ELIBBAD, "ELIBBAD"},
    {ELOOP, "ELOOP"},
    {EMFILE, "EMFILE"},
    {EMLINK, "EMLINK"},
    {EMSGSIZE, "EMSGSIZE"},
    {ENAMETOOLONG, "ENAMETOOLONG"},
    {ENETUNREACH, "ENETUNREACH"},
    {ENFILE, "ENFILE"},
    {ENOBUFS, "ENOBUFS"},
    {ENODATA, "ENODATA"},
    {ENODEV, "ENODEV"},
    {ENOENT, "ENOENT"},
    {ENOEXEC, "ENOEXEC"},
    {ENOLCK, "ENOLCK"},
    {ENOMEM, "ENOMEM"},
    {ENOSPC, "ENOSPC"},
    {ENOSYS, "ENOSYS"},
    {ENOTCONN, "ENOTCONN"},
    {ENOTDIR, "ENOTDIR"},
    {ENOTEMPTY, "ENOTEMPTY"},
    {ENOTSOCK, "ENOTSOCK"},
    {ENOTTY, "ENOTTY"},
    {ENXIO, "ENXIO"},
    {EOPNOTSUPP, "EOPNOTSUPP"},
    {EOVERFLOW, "EOVERFLOW"},
    {EPERM, "EPERM"},
    {EPIPE, "EPIPE"},
    {EPROTO, "EPROTO"},
    {ERANGE, "ERANGE"},
    {EROFS, "EROFS"},
    {ESPIPE, "ESPIPE"},
    {ESRCH, "ESRCH"},
    {ESTALE, "ESTALE"},
    {ETIMEDOUT, "ETIMEDOUT"},
    {ETXTBSY, "ETXTBSY"},
    {EUSERS, "EUSERS"},
    {EXDEV, "EXDEV"},
};

/* Sentences quote what a client sent, and may have been cut inside a character. */
static void make_valid(char *text)
{
    size_t len = strlen(text);
    size_t at = nk_utf8_valid_prefix(text, len);

    while (at < len) {
        text[at] = '?';
        at += nk_utf8_valid_prefix(text + at, len - at);
    }
}

static void fill(struct nk_err *err, enum nk_code code, size_t room, const char *fmt, va_list args)
    __attribute__((format(printf, 4, 0)));

static void fill(struct nk_err *err, enum nk_code code, size_t room, const char *fmt, va_list args)
{
    err->code = code;
    err->sys = 0;
    err->stage = NULL;
    err->value = 0;
    if (vsnprintf(err->msg, room, fmt, args) < 0)
        err->msg[0] = '\0';
}

int nk_fail(struct nk_err *err, enum nk_code code, const char *fmt, ...)
{
    va_list args;

    if (!err)
        return -1;
    va_start(args, fmt);
    fill(err, code, sizeof err->msg, fmt, args);
    va_end(args);
    make_valid(err->msg);
    return -1;
}

static enum nk_code code_of(int sys)
{
    for (size_t i = 0; i < NK_COUNT(codes); i++) {
        if (codes[i].sys == sys)
            return codes[i].code;
    }
    return NK_INTERNAL;
}

int nk_fail_sys(struct nk_err *err, int sys, const char *fmt, ...)
{
    va_list args;
    size_t len;

    if (!err)
        return -1;
    va_start(args, fmt);
    fill(err, code_of(sys), sizeof err->msg - REASON_ROOM, fmt, args);
    va_end(args);
    err->sys = sys;
    len = strlen(err->msg);
    (void)snprintf(err->msg + len, sizeof err->msg - len, ": %s", strerror(sys));
    make_valid(err->msg);
    return -1;
}

const char *nk_err_errno_name(int sys)
{
    for (size_t i = 0; i < NK_COUNT(names); i++) {
        if (names[i].sys == sys)
            return names[i].name;
    }
    return "EUNKNOWN";
}
