/*
 * Images among the files that code made: told by their content, and read.
 *
 * Blocking; on pool threads with the user's rights.
 */
#ifndef NK_CODE_IMAGES_H
#define NK_CODE_IMAGES_H

#include <stddef.h>
#include <stdint.h>

#include "files/snapshot.h"

#define NK_IMAGES_MAX 64 /* whose bytes are told */

struct nk_image {
    const struct nk_change *change; /* borrowed from the snapshot */
    const char *mime;               /* static */
    uint64_t size;
    uint8_t *data; /* owned; NULL: too much, or forgotten */
};

struct nk_images {
    struct nk_image *item; /* owned */
    size_t count;
    size_t next; /* the change to be looked at next */
    size_t bytes;
};

/* "image/png", …, or NULL. The first NK_IMAGES_HEAD bytes are enough. */
#define NK_IMAGES_HEAD 4096
const char *nk_images_type(const uint8_t *head, size_t len);

/* Goes on through the changes that lie in the folder `dir` (absolute), in slices: 1 where `until_ns`
 * came first, 0 at the end. At most `max_bytes` are kept in all. */
int nk_images_collect(struct nk_images *images, const struct nk_snapshot *snapshot, const char *dir,
                      uint64_t max_bytes, uint64_t until_ns);
void nk_images_drop_data(struct nk_images *images);
void nk_images_fini(struct nk_images *images);

#endif
