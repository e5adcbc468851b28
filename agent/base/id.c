#include "base/id.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define BATCH 480 /* 32 ids of 15 bytes */

/* Random bytes not handed out yet. Of the thread, so that no lock is needed. */
static _Thread_local struct {
    uint8_t bytes[BATCH];
    unsigned left;
} pool;

static void fill(uint8_t *out, size_t len)
{
    while (len > 0) {
        ssize_t n = getrandom(out, len, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            abort(); /* a kernel without randomness: nothing we name would be safe */
        out += n;
        len -= (size_t)n;
    }
}

void nk_id_random(void *out, unsigned len)
{
    uint8_t *from;

    if (len > BATCH) {
        fill(out, len);
        return;
    }
    if (pool.left < len) {
        fill(pool.bytes, BATCH);
        pool.left = BATCH;
    }
    pool.left -= len;
    from = pool.bytes + pool.left;
    memcpy(out, from, len);
    explicit_bzero(from, len); /* what was given out is not kept */
}

void nk_id_new(char out[NK_ID_MAX])
{
    static const char letters[] = "abcdefghijkmnpqrstuvwxyz23456789"; /* 32, without l o 0 1 */
    uint8_t random[15];
    uint64_t bits = 0;
    unsigned have = 0, at = 0;

    nk_id_random(random, sizeof random);
    for (unsigned i = 0; i < sizeof random; i++) {
        bits = bits << 8 | random[i];
        for (have += 8; have >= 5; have -= 5)
            out[at++] = letters[bits >> (have - 5) & 31];
    }
    out[at] = '\0';
}
