/*
 * Changes in a folder, or below it, as they happen (inotify).
 *
 * The descriptor is polled on the loop; reading it, looking at what changed and adding folders is
 * done in slices on pool threads with the user's rights. While what was told has not been taken
 * (nk_watch_resume), nothing more is read, and the kernel's queue is the bound: what does not fit
 * there is told as an overflow. A new folder is watched first and listed then, so that nothing in it
 * is missed. At most NK_WATCH_FOLDERS are watched; whenever more come, that is an overflow too, and
 * once more when there is room for them again, and they are watched.
 *
 * Opened and closed on the loop; memory goes later.
 */
#ifndef NK_FILES_WATCH_H
#define NK_FILES_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/err.h"
#include "base/job.h"
#include "files/roots.h"

#define NK_WATCH_FOLDERS 8192

struct nk_watch;

enum nk_watch_kind {
    NK_WATCH_CREATED,
    NK_WATCH_MODIFIED,
    NK_WATCH_REMOVED,
    NK_WATCH_MOVED,
    NK_WATCH_OVERFLOW, /* no path: list again */
};

struct nk_watch_event {
    enum nk_watch_kind kind;
    const char *path; /* in the form of the request */
    const char *to;   /* of a move */
    const char *type; /* file, dir, symlink, other */
};

struct nk_watch_events {
    /* On a pool thread; the event is borrowed for the call. False: enough for now. */
    bool (*on_event)(void *ctx, const struct nk_watch_event *event);
    /* On the loop, never from within a call of the owner. The watch stands, or err: it does not. */
    void (*on_ready)(void *ctx, const struct nk_err *err);
    /* on_event was called, and is not until nk_watch_resume. `ended`: the folder itself is gone. */
    void (*on_batch)(void *ctx, bool ended);
    /* After nk_watch_close: nothing is called any more. May be long after. */
    void (*on_closed)(void *ctx);
};

struct nk_watch_config {
    uv_loop_t *loop;              /* borrowed: outlives the watch, likewise below */
    struct nk_jobs *jobs;         /* borrowed */
    const struct nk_creds *as;    /* borrowed */
    const void *share;            /* as in base/job.h */
    const struct nk_roots *roots; /* borrowed */
    const char *path;
    size_t path_len;
    bool recursive;
    const struct nk_watch_events *events; /* static */
    void *ctx;
};

int nk_watch_open(const struct nk_watch_config *cfg, struct nk_watch **out, struct nk_err *err);
void nk_watch_resume(struct nk_watch *w);
void nk_watch_close(struct nk_watch **slot); /* NULL is fine */

#endif
