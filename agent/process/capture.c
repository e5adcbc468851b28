#include "process/capture.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 512u

void nk_capture_init(struct nk_capture *c, size_t cap)
{
    *c = (struct nk_capture){.cap = cap};
}

void nk_capture_fini(struct nk_capture *c)
{
    free(c->data);
    c->data = NULL;
    c->size = 0;
}

/* Only while the ring has not turned yet (total <= size): the bytes are in order from 0. */
static void grow(struct nk_capture *c, size_t want)
{
    size_t size = c->size ? c->size : FIRST_SIZE;
    uint8_t *data;

    while (size < want && size < c->cap)
        size *= 2;
    if (size > c->cap)
        size = c->cap;
    if (size <= c->size)
        return;
    data = realloc(c->data, size);
    if (!data)
        return;
    c->data = data;
    c->size = size;
    c->at = (size_t)c->total;
}

void nk_capture_write(struct nk_capture *c, const void *data, size_t len)
{
    const uint8_t *from = data;

    if (c->total <= c->size && len > c->size - c->total)
        grow(c, (size_t)c->total + len);
    c->total += len;
    if (len > c->size) {
        from += len - c->size;
        len = c->size;
    }
    while (len > 0) {
        size_t n = len < c->size - c->at ? len : c->size - c->at;

        memcpy(c->data + c->at, from, n);
        c->at = (c->at + n) % c->size;
        from += n;
        len -= n;
    }
}

bool nk_capture_truncated(const struct nk_capture *c)
{
    return c->total > c->size;
}

static void reverse(uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len / 2; i++) {
        uint8_t byte = data[i];

        data[i] = data[len - 1 - i];
        data[len - 1 - i] = byte;
    }
}

const uint8_t *nk_capture_bytes(struct nk_capture *c, size_t *out_len)
{
    if (c->total <= c->size) {
        *out_len = (size_t)c->total;
        return c->data;
    }
    if (c->at) { /* a rotation in place, without a second buffer of the same size */
        reverse(c->data, c->at);
        reverse(c->data + c->at, c->size - c->at);
        reverse(c->data, c->size);
        c->at = 0;
    }
    *out_len = c->size;
    return c->data;
}
