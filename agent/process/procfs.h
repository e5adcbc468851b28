/*
 * What /proc says of processes, as text: read, and the few fields of it that trees are told by.
 *
 * Plain functions; blocking: called in jobs. `proc` is a descriptor of /proc, `pid` a folder's name.
 */
#ifndef NK_PROCESS_PROCFS_H
#define NK_PROCESS_PROCFS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define NK_PROCFS_STATUS_MAX 8192 /* of /proc/PID/status; groups come early in it */

/* The file of a process, with a NUL. Its length, or -errno. */
ssize_t nk_procfs_read(int proc, const char *pid, const char *file, char *buf, size_t size);

/* The next process folder, or NULL at the end. */
const char *nk_procfs_next(DIR *dir);

/* Of the text of a status: what follows the name ("\nState:\t"), or NULL. */
const char *nk_procfs_field(const char *status, const char *name);
/* Whether the set of signals that follows the name ("\nSigBlk:\t") has this one. */
bool nk_procfs_has_signal(const char *status, const char *name, int signo);
/* Without any thread that lives: one whose first thread has ended alone shows as a zombie too. */
bool nk_procfs_is_dead(const char *status);

/* Stopped, or sure to be: a parent that waits for its vfork child, which was stopped before its exec,
 * cannot act on the STOP that is pending. */
bool nk_procfs_stands_still(int proc, const char *pid, const char *status);

/* Calls `fn` for each supplementary group of the process; stops when it returns true. */
bool nk_procfs_each_group(const char *status, bool (*fn)(gid_t gid, void *ctx), void *ctx);

/* Real, effective, saved and of the file system. False: it is not told. */
bool nk_procfs_uids(const char *status, unsigned out[4]);

#endif
