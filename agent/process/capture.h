/*
 * The whole result of one stream: its newest `cap` bytes and how many there were.
 *
 * For answers that are sent when the command is over. Grown on demand; owned by one thread.
 */
#ifndef NK_PROCESS_CAPTURE_H
#define NK_PROCESS_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nk_capture {
    uint8_t *data; /* owned, a ring once `total` is past `size` */
    size_t size;   /* allocated */
    size_t cap;
    size_t at;      /* where the next byte goes */
    uint64_t total; /* bytes ever written */
};

void nk_capture_init(struct nk_capture *c, size_t cap);
void nk_capture_fini(struct nk_capture *c);
void nk_capture_write(struct nk_capture *c, const void *data, size_t len);
bool nk_capture_truncated(const struct nk_capture *c);
/* Turns the ring so that the kept bytes are contiguous; borrowed until the next write. */
const uint8_t *nk_capture_bytes(struct nk_capture *c, size_t *out_len);

#endif
