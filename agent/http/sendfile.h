/*
 * A run of a regular file on its way to a socket.
 *
 * A page that is not in memory would stop the loop, so a job reads each window before it is sent:
 * a small file into memory whole, a large one for the page cache, one window ahead. A file that
 * has become shorter breaks the answer off.
 *
 * Owned by the output of a request. It may be freed while a job runs; the job then lets go of it.
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

/* Takes `fd`, also on failure. `req` is woken when a window is ready. NULL: no memory. */
struct nk_sendfile *nk_sendfile_new(struct nk_jobs *jobs, struct nk_req *req, int fd,
                                    uint64_t offset, uint64_t len);
void nk_sendfile_free(struct nk_sendfile *f); /* NULL is fine */

/* Nothing can be sent before the job that runs has ended. */
bool nk_sendfile_waits(const struct nk_sendfile *f);
/* Moves a small file that has been read whole into the empty `out`. */
bool nk_sendfile_take(struct nk_sendfile *f, struct nk_buf *out);
/* Bytes sent, -EAGAIN: the socket is full, -EINPROGRESS: a job reads, else -errno. */
ssize_t nk_sendfile_send(struct nk_sendfile *f, int socket);
uint64_t nk_sendfile_left(const struct nk_sendfile *f);

#endif
