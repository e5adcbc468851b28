/*
 * Folders that a start needs: made with what is missing above them.
 *
 * Blocking; of the start alone, before anything else runs.
 */
#ifndef NK_BASE_FOLDER_H
#define NK_BASE_FOLDER_H

#include <sys/types.h>

/* 1: it was made, with `mode`, and folders above it with 0755, whatever the umask; 0: a folder is
 * there; else -errno (-ENOTDIR: something else is). */
int nk_folder_make(const char *path, mode_t mode);

#endif
