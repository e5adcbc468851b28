/*
 * Files that are not complete yet: without any name where the file system can, else under a hidden
 * one in the folder where they will get their own.
 *
 * What has such a name is locked for as long as somebody works on it. So what a killed daemon left is
 * told from what a living one makes, also by another daemon on the same folder (files/leftovers.h).
 * The loop thread makes names, pool threads do the rest with the user's rights.
 */
#ifndef NK_FILES_TEMP_H
#define NK_FILES_TEMP_H

#include <stdbool.h>
#include <sys/types.h>

#define NK_TEMP_MAX 40

void nk_temp_name(char out[NK_TEMP_MAX]);
bool nk_temp_is(const char *name);

/* For writing, without a name; or -errno, where it is the file system that cannot: -EOPNOTSUPP. */
int nk_temp_nameless(int dir);
/* The same, without a look whether it can get a name later; its mode is `mode` but for the umask. */
int nk_temp_open_nameless(int dir, mode_t mode);
int nk_temp_give_name(int fd, int dir, const char *name); /* 0 or -errno */
/* For writing, under a name; or -errno. */
int nk_temp_create(int dir, const char *name);
/* Locks what lies at `name`, open as `fd`. 0, or -EAGAIN: it was taken for a leftover. */
int nk_temp_hold(int fd);
/* Nobody works on the file or folder `name` any more. */
bool nk_temp_is_left(int dir, const char *name);

/* Puts what is finished, `temp`, in the place of `name` in the same folder. Where something is in
 * the way: without `replace` -EEXIST; else it is replaced, and what was there is left at `temp` when
 * it could not be replaced at once (a folder with content): *out_old. 0 or -errno. */
int nk_temp_settle(int dir, const char *temp, const char *name, bool replace, bool *out_old);

#endif
