/*
 * Names for files that are not complete yet: hidden, in the folder where they will get their own.
 *
 * The loop thread makes them, any thread tells them from others. No I/O.
 */
#ifndef NK_FILES_TEMP_H
#define NK_FILES_TEMP_H

#include <stdbool.h>

#define NK_TEMP_MAX 40

void nk_temp_name(char out[NK_TEMP_MAX]);
bool nk_temp_is(const char *name);

/* Puts what is finished, `temp`, in the place of `name` in the same folder. Where something is in
 * the way: without `replace` -EEXIST; else it is replaced, and what was there is left at `temp` when
 * it could not be replaced at once (a folder with content): *out_old. 0 or -errno. */
int nk_temp_settle(int dir, const char *temp, const char *name, bool replace, bool *out_old);

#endif
