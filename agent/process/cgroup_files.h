/*
 * Small files of a control group: written and read whole.
 *
 * Private to process/. Blocking: the kernel may wait for a grace period in a write.
 */
#ifndef NK_PROCESS_CGROUP_FILES_H
#define NK_PROCESS_CGROUP_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int nk_cgroup_files_write(int dir, const char *name, const char *text); /* 0 or -errno */
/* Ended by NUL, cut to what fits. 0 or -errno. */
int nk_cgroup_files_read(int dir, const char *name, char *out, size_t size);
/* The number behind a word at the beginning of a line; 0 where it is not. */
uint64_t nk_cgroup_files_value(const char *text, const char *word);
/* Whether a list with blanks has the word. */
bool nk_cgroup_files_lists(const char *text, const char *word);

#endif
