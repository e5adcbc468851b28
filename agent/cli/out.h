/*
 * What a verb prints: bytes to standard output and error, exactly and at once.
 *
 * No stdio: nothing is held back, and a reader that went away is noticed at the write.
 */
#ifndef NK_CLI_OUT_H
#define NK_CLI_OUT_H

#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/interrupt.h"

#define NK_OUT_FAILED 125      /* nookd itself failed */
#define NK_OUT_PIPE (128 + 13) /* as a tool that died by PIPE */

/* 0, or the exit status to end with: NK_OUT_PIPE when nobody reads `fd` any more, 128 + N after a
 * signal, NK_OUT_FAILED (told on standard error). `i` may be NULL. */
int nk_out_write(const struct nk_interrupt *i, int fd, const void *data, size_t len);
int nk_out_buf(const struct nk_buf *buf); /* to standard output; likewise */

/* One line "nookd: …" on standard error; gives NK_OUT_FAILED. */
int nk_out_fail(const struct nk_err *err);
int nk_out_fail_msg(const char *fmt, ...) NK_PRINTF(1, 2);

/* Appends `s` with what a terminal would act upon replaced by '?'. */
void nk_out_plain(struct nk_buf *out, const char *s);

#endif
