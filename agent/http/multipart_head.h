/*
 * The head of one part, and parameters of header values. Changes the text in place. No state.
 */
#ifndef NK_HTTP_MULTIPART_HEAD_H
#define NK_HTTP_MULTIPART_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct nk_multipart_head { /* borrowed: the text */
    const char *name;      /* NULL where absent, likewise below */
    const char *filename;
    size_t filename_len; /* may hold any byte but NUL */
    const char *type;
};

/* `text`: the lines, each with its CRLF, and a NUL. */
int nk_multipart_head_parse(char *text, size_t len, struct nk_multipart_head *out,
                            struct nk_err *err);

/* The value of a parameter (`name=token` or `name="text"`) behind a header's first value; it is
 * unquoted in place. NULL where absent or malformed. */
char *nk_multipart_head_param(char *value, const char *name);

#endif
