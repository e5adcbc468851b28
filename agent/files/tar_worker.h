/*
 * Tar as a stream: bytes to entries, and entries to bytes.
 *
 * The only home of libarchive, which is used for nothing else: it never sees the disk, starts no
 * program, and is given tar alone, plain or by gzip, zstd and xz. Names are bytes, in both
 * directions; nothing here depends on a locale. Memory is constant, whatever the archive holds.
 *
 * Runs in the archive worker (and in the client verb that copies), on one thread. Blocking, as the
 * functions are that it is given to read and write with.
 */
#ifndef NK_FILES_TAR_WORKER_H
#define NK_FILES_TAR_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Buffers begin where a page does: some processors copy several times as fast from a page to the same
 * place in another than to one a few bytes further. */
#define NK_TAR_PAGE 4096u

enum nk_tar_type {
    NK_TAR_FILE,
    NK_TAR_DIR,
    NK_TAR_SYMLINK,
    NK_TAR_HARDLINK, /* `link` names an entry before it */
    NK_TAR_DEVICE,
    NK_TAR_FIFO,
    NK_TAR_OTHER,
};

enum nk_tar_format { NK_TAR_PLAIN, NK_TAR_GZIP, NK_TAR_ZSTD };

struct nk_tar_entry {
    enum nk_tar_type type;
    const char *name; /* borrowed: until the next entry; never NULL */
    const char *link; /* borrowed likewise: where a link leads; NULL for what is none */
    unsigned mode;    /* as told, set-id bits too */
    uid_t uid;
    gid_t gid;
    int64_t mtime_s;
    long mtime_ns;
    uint64_t size; /* of a file, holes and all */
};

struct nk_tar_extent { /* bytes of a file that are no hole */
    uint64_t offset;
    uint64_t len;
};

/* More bytes of the archive: how many, 0 at its end, or -1 with err. Borrowed until the next call. */
typedef ssize_t (*nk_tar_read_fn)(void *ctx, const void **out_data, struct nk_err *err);
/* Takes all of it. 0, or -1 with err. */
typedef int (*nk_tar_write_fn)(void *ctx, const void *data, size_t len, struct nk_err *err);

struct nk_tar_reader;

/* Reads on to the first entry's header. What is no tar, damaged or cut short is NK_BAD_REQUEST, here
 * and below; a compressed one that grows more than NK_TAR_RATIO times, NK_TOO_LARGE. Archives and
 * compressed streams that follow one another count as one. */
#define NK_TAR_RATIO 200
#define NK_TAR_RATIO_FROM (16u * 1024u * 1024u)
int nk_tar_reader_open(nk_tar_read_fn read, void *ctx, struct nk_tar_reader **out,
                       struct nk_err *err);
void nk_tar_reader_close(struct nk_tar_reader *r); /* NULL is fine */

/* 1: an entry; 0: no more; -1 with err. What was not read of the entry before is passed over. */
int nk_tar_reader_next(struct nk_tar_reader *r, struct nk_tar_entry *out, struct nk_err *err);
/* 1: bytes of the entry, in order, holes left out; 0: no more; -1 with err. */
int nk_tar_reader_data(struct nk_tar_reader *r, const void **out, size_t *out_len,
                       uint64_t *out_offset, struct nk_err *err);

struct nk_tar_writer;

int nk_tar_writer_open(enum nk_tar_format format, nk_tar_write_fn write, void *ctx,
                       struct nk_tar_writer **out, struct nk_err *err);
void nk_tar_writer_close(struct nk_tar_writer *w); /* NULL is fine; without _end it is broken off */

/* `extents`: where a file with holes has bytes; none: it has no holes. Data then comes for the whole
 * size, holes too, of which none is written. */
int nk_tar_writer_begin(struct nk_tar_writer *w, const struct nk_tar_entry *e,
                        const struct nk_tar_extent *extents, size_t extent_count,
                        struct nk_err *err);
int nk_tar_writer_data(struct nk_tar_writer *w, const void *data, size_t len, struct nk_err *err);
int nk_tar_writer_end(struct nk_tar_writer *w, struct nk_err *err);

#endif
