/*
 * Archives on their way: the daemon's side of the archive workers.
 *
 * Each archive has a worker process of its own (tar_task.h), with the user's rights and few others.
 * Here bytes are only moved, and only as fast as the other side takes them: from a request's body to
 * the worker, or from the worker to a reply. What a worker says is not trusted. One that moves
 * nothing for NK_ARCHIVE_STALL_MS while we wait for it is killed.
 *
 * Loop thread only. The archives are owned by app, each archive by who opened it.
 */
#ifndef NK_FILES_ARCHIVES_H
#define NK_FILES_ARCHIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/creds.h"
#include "base/err.h"
#include "files/tar_order.h"
#include "files/tar_result.h"

#define NK_ARCHIVE_STALL_MS 120000
#define NK_ARCHIVE_LEAVE_MS 10000 /* for a worker to end: it is done, or its client has left */
#define NK_ARCHIVE_MAX 64         /* workers at a time; above: NK_BUSY */
#define NK_ARCHIVE_SHARE 16       /* of one identity, or of the sandbox's own */

struct nk_spawner;
struct nk_reaper;
struct nk_archive;
struct nk_archives;

struct nk_archives_config {
    uv_loop_t *loop; /* all borrowed: outlive the archives */
    struct nk_spawner *spawner;
    struct nk_reaper *reaper;
    uint64_t fsize; /* bytes of one file; 0: no bound */
};

int nk_archives_open(const struct nk_archives_config *cfg, struct nk_archives **out);
/* Kills every worker. Memory goes when all handles are closed. */
void nk_archives_close(struct nk_archives **slot);

/* Never called from within a function that its receiver has called, nor after nk_archive_close. */
struct nk_archive_events {
    void (*ready)(void *ctx); /* all that was asked for is there */
    void (*more)(void *ctx);  /* there is something to read, or room to write, or it is over */
    /* Once. `err` is NULL where all was done; `result` (unpacking) tells what was, in any case. */
    void (*over)(void *ctx, const struct nk_tar_result *result, const struct nk_err *err);
    void *ctx; /* borrowed: until the close */
};

struct nk_archive_user {
    const struct nk_creds *creds; /* borrowed for the call */
    const void *share;            /* as in base/job.h */
};

int nk_archive_open(struct nk_archives *all, const struct nk_tar_order *order,
                    const struct nk_archive_user *user, const struct nk_archive_events *events,
                    struct nk_archive **out, struct nk_err *err);
void nk_archive_close(struct nk_archive **slot); /* the worker ends by itself, or is ended */

/* Packing: how many bytes, 0 at the end of a whole archive, -EAGAIN: `more` will tell, or -EIO: it
 * has failed, and what came is no archive. */
ssize_t nk_archive_read(struct nk_archive *a, void *out, size_t len);
/* How many bytes nk_archive_send can move; 0 also where they must be read. It may say -EAGAIN: the
 * socket is full; or another -errno: they must be read after all. */
size_t nk_archive_ready(const struct nk_archive *a);
ssize_t nk_archive_send(struct nk_archive *a, int socket, size_t len);

/* Unpacking. Takes all of it; true: write no more until `more`. */
bool nk_archive_write(struct nk_archive *a, const void *data, size_t len);
/* Moves what the socket has: how many bytes; 0: it must be read; -EAGAIN: no room until `more`. */
ssize_t nk_archive_take(struct nk_archive *a, int socket, size_t max);
void nk_archive_end(struct nk_archive *a); /* no more will be written */

#endif
