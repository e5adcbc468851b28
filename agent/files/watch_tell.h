/*
 * What a watch tells, in the form of the request.
 *
 * Of files/watch_read.c and files/watch_walk.c only; on their thread.
 */
#ifndef NK_FILES_WATCH_TELL_H
#define NK_FILES_WATCH_TELL_H

#include "files/watch_read.h"

/* The caller frees it; NULL: no memory. */
char *nk_watch_tell_join(const char *folder, const char *name);

/* The paths of `event` are from the top. Without memory for them it becomes an overflow. */
void nk_watch_tell(struct nk_watch_read *r, struct nk_watch_event event);
void nk_watch_tell_overflow(struct nk_watch_read *r);

#endif
