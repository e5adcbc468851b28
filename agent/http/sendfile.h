/*
 * A run of a regular file on its way to a socket.
 *
 * A page that is not in memory would stop the loop, so a job sends: for as long as the socket takes
 * the bytes, and no longer than base/patience.h allows. Waiting for a slow client is the loop's. A
 * small file is read into memory whole, to go out with the head. A file that has become shorter
 * breaks the answer off.
 *
 * Owned by the output of a request. It may be freed while a job runs; the job has its own descriptor
 * of the socket and lets go of all at its end.
 */
#ifndef NK_HTTP_SENDFILE_H
#define NK_HTTP_SENDFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct nk_jobs;
struct nk_req;
struct nk_sendfile;

/* Takes `fd`, also on failure. `req` is woken when a job has ended. NULL: no memory. */
struct nk_sendfile *nk_sendfile_new(struct nk_jobs *jobs, struct nk_req *req, int fd,
                                    uint64_t offset, uint64_t len);
void nk_sendfile_free(struct nk_sendfile *f); /* NULL is fine */

/* Nothing can be done before the job that runs has ended. */
bool nk_sendfile_waits(const struct nk_sendfile *f);
/* Moves a small file that has been read whole into the empty `out`. */
bool nk_sendfile_take(struct nk_sendfile *f, struct nk_buf *out);
/* Bytes sent since the last call; -EINPROGRESS: a job has begun to send; -EAGAIN: the socket is full;
 * else -errno. */
ssize_t nk_sendfile_send(struct nk_sendfile *f, int socket);
uint64_t nk_sendfile_left(const struct nk_sendfile *f);

#endif
