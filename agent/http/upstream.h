/*
 * A connection of our own to a TCP server on loopback, 127.0.0.1 or else ::1.
 *
 * Its socket is made with the rights of a user, in a job, so that it is that user's to whoever looks.
 * Reads and writes never wait: after -EAGAIN the event `ready` tells, once. No event comes from
 * within a call, nor after _close. Owned by its opener; loop thread only.
 */
#ifndef NK_HTTP_UPSTREAM_H
#define NK_HTTP_UPSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <uv.h>

#include "base/creds.h"
#include "base/err.h"

struct nk_jobs;
struct nk_upstream;

struct nk_upstream_events {
    void (*opened)(void *ctx);
    void (*failed)(void *ctx,
                   const struct nk_err *err); /* in place of `opened`: only to be closed */
    void (*ready)(void *ctx, bool readable, bool writable);
};

struct nk_upstream_config {
    uv_loop_t *loop;
    struct nk_jobs *jobs; /* borrowed: outlives it */
    uint16_t port;
    unsigned connect_ms;
    const struct nk_creds *as; /* borrowed until closed; NULL: as we are */
    const void *share;         /* of the jobs */
    /* In a job, before and after connecting: whether the server of that family (AF_INET, AF_INET6)
     * may be talked to. NULL: any. */
    bool (*may)(const void *who, int family, uint16_t port);
    const void *who;
    const struct nk_upstream_events *events; /* static */
    void *ctx;
};

/* -ENOMEM or 0. */
int nk_upstream_open(const struct nk_upstream_config *cfg, struct nk_upstream **out);
void nk_upstream_close(struct nk_upstream **slot);

/* Once it is open: bytes, 0 at the end, -EAGAIN, or -errno. */
ssize_t nk_upstream_read(struct nk_upstream *u, void *into, size_t len);
ssize_t nk_upstream_write(struct nk_upstream *u, const struct iovec *iov, size_t count);
void nk_upstream_shut(struct nk_upstream *u); /* nothing more will be written */

#endif
