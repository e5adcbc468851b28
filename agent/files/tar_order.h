/*
 * What the archive worker is to do: written by the daemon as a note, read by the worker.
 *
 * The note comes first on the worker's standard input. A value; owns nothing but `text`, which the
 * worker read, and the lists that point into it.
 */
#ifndef NK_FILES_TAR_ORDER_H
#define NK_FILES_TAR_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "files/tar_extract.h"
#include "files/tar_worker.h"

struct nk_tar_order {
    bool pack; /* else unpack */
    bool openat2;
    const char *const *writable; /* NULL-ended; the first is the working directory */
    const char *const *readable; /* NULL-ended, or NULL */
    const char *const *paths;    /* NULL-ended: what to pack; the one place to unpack into */
    const char *base;            /* pack: what names are relative to; NULL: as the contract says */
    enum nk_tar_format format;
    bool skip_links;
    bool strict;                    /* unpack */
    const struct nk_tar_room *room; /* unpack; NULL: no bound */
    bool bounded;                   /* the worker's: */
    struct nk_tar_room room_read;   /* what it read of it */
    char *text;                     /* owned, by the worker */
    const char **lists;             /* owned, by the worker */
};

/* Into a pipe that is empty, and far larger than an order. 0 or -errno. */
int nk_tar_order_send(int fd, const struct nk_tar_order *order);

/* Blocking: reads exactly the note from `fd`. */
int nk_tar_order_read(int fd, struct nk_tar_order *out, struct nk_err *err);
void nk_tar_order_fini(struct nk_tar_order *order); /* one that was read, or a zeroed one */

#endif
