/*
 * What went wrong, in the words of the protocol.
 *
 * The code is stable and part of the wire; the sentence is for people. Neither carries file
 * contents, tokens or addresses of memory. An error is filled exactly once, where the cause is
 * known, and handed up; whoever handles it logs it. `api/problem.c` maps codes to HTTP.
 *
 * A value on the stack of the caller; owns nothing.
 */
#ifndef NK_BASE_ERR_H
#define NK_BASE_ERR_H

#include <stdint.h>

#include "base/attr.h"

enum nk_code {
    NK_OK = 0,
    NK_BAD_REQUEST,
    NK_BAD_JSON,
    NK_BAD_PATH,
    NK_BAD_IDENTITY,
    NK_BAD_LANGUAGE,
    NK_BAD_SIGNAL,
    NK_EXEC_FAILED,
    NK_UNAUTHORIZED,
    NK_FORBIDDEN,
    NK_NOT_FOUND,
    NK_METHOD_NOT_ALLOWED,
    NK_TIMEOUT,
    NK_BUSY,
    NK_QUOTA_EXCEEDED,
    NK_EXISTS,
    NK_NOT_EMPTY,
    NK_PAUSED,
    NK_CONFLICT,
    NK_GONE,
    NK_PRECONDITION_FAILED,
    NK_TOO_LARGE,
    NK_URI_TOO_LONG,
    NK_UNSUPPORTED_MEDIA_TYPE,
    NK_RANGE_NOT_SATISFIABLE,
    NK_EXPECTATION_FAILED,
    NK_UPGRADE_REQUIRED,
    NK_HEADERS_TOO_LARGE,
    NK_INTERNAL,
    NK_NOT_SUPPORTED,
    NK_BAD_GATEWAY,
    NK_STARTING,
    NK_SHUTTING_DOWN,
    NK_OVERLOADED,
    NK_GATEWAY_TIMEOUT,
    NK_HTTP_VERSION,
    NK_NO_SPACE,
    NK_CODE_COUNT,
};

struct nk_err {
    enum nk_code code;
    int sys; /* the errno behind it, 0 where there is none */
    const char
        *stage; /* borrowed: static; the step of a failed start ("exec", "chdir", …) or NULL */
    uint64_t value; /* NK_GONE: the first offset still held; NK_METHOD_NOT_ALLOWED: a method set */
    char msg[256];
};

/* Both fill `err`, which may be NULL, and return -1. `nk_fail_sys` chooses the code from the errno:
 * ENOENT not_found, EACCES/EPERM/EROFS forbidden, ENOSPC no_space, EDQUOT quota_exceeded,
 * ENOMEM/EMFILE/ENFILE/EAGAIN overloaded, EEXIST exists, ENOTEMPTY not_empty, ELOOP/ENAMETOOLONG/
 * ENOTDIR bad_path, ENOSYS/EOPNOTSUPP not_supported, else internal; it appends ": reason". */
int nk_fail(struct nk_err *err, enum nk_code code, const char *fmt, ...) NK_PRINTF(3, 4);
int nk_fail_sys(struct nk_err *err, int sys, const char *fmt, ...) NK_PRINTF(3, 4);

/* "ENOENT" for ENOENT; "E123" style names are never made up: an unknown number gives "EUNKNOWN". */
const char *nk_err_errno_name(int sys);

#endif
