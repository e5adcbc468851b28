/*
 * One file being written from a stream: to a temporary name in its folder, and renamed when it is
 * complete. Whoever reads meanwhile sees the old file or the new one; when it breaks off, the old
 * one is left and nothing else.
 *
 * Used on the loop; the file is touched in jobs with the user's rights. At most two buffers wait; a
 * large body of known length can be read by the job itself, through one of them.
 * After nk_upload_drop the owner hears nothing any more, and the memory goes by itself.
 */
#ifndef NK_FILES_UPLOAD_H
#define NK_FILES_UPLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/job.h"
#include "files/entry.h"
#include "files/roots.h"

#define NK_UPLOAD_BUFFER (256u * 1024u)
#define NK_UPLOAD_KEEP_MODE 0xffffffffu /* 0644, or that of the file that is replaced */

struct nk_upload;

struct nk_upload_events {
    /* It takes more again, after nk_upload_write said that it is full. */
    void (*on_room)(void *ctx);
    /* So much was read after nk_upload_read; NULL where that is not used. */
    void (*on_read)(void *ctx, uint64_t bytes);
    /* Over: err NULL and the entry (borrowed for the call), or err. Once, and never from within a
     * call of the owner. Then only nk_upload_drop is left to do. */
    void (*on_over)(void *ctx, const struct nk_entry *entry, bool created,
                    const struct nk_err *err);
};

struct nk_upload_config {
    struct nk_jobs *jobs;         /* borrowed: outlives the upload */
    const struct nk_creds *as;    /* borrowed: likewise */
    const void *share;            /* as in base/job.h */
    const struct nk_roots *roots; /* borrowed: outlives the upload */
    const char *path;
    size_t path_len;
    unsigned mode;                         /* or NK_UPLOAD_KEEP_MODE */
    int64_t size;                          /* -1: not known before */
    const struct nk_upload_events *events; /* static */
    void *ctx;
};

/* Begins to open the file; full until it is open: on_room tells. 0, or -1: no memory. */
int nk_upload_new(const struct nk_upload_config *cfg, struct nk_upload **out, struct nk_err *err);

/* Takes all of it; false: full, give no more until on_room. Never more than 64 KiB at once. */
bool nk_upload_write(struct nk_upload *u, const void *data, size_t len);

/* Reads what comes next, up to `max` bytes, from `socket` (non-blocking, borrowed for the call)
 * straight into the file: on_read follows, and on_over if it failed. False: not now. */
bool nk_upload_read(struct nk_upload *u, int socket, uint64_t max);
/* From the first on_room on, while it does not run, and in on_over: whether there is a file that it
 * takes the place of. */
bool nk_upload_replaces(const struct nk_upload *u, uint64_t *out_size);
void nk_upload_file(const struct nk_upload *u, dev_t *out_dev, ino_t *out_ino); /* it writes to */
unsigned nk_upload_made(const struct nk_upload *u); /* folders, in on_over */
void nk_upload_end(struct nk_upload *u);            /* complete: on_over follows */

/* Lets go; what is not complete is removed. NULL is fine. */
void nk_upload_drop(struct nk_upload **slot);

#endif
