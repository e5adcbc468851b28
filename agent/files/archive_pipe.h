/*
 * Our end of a pipe to an archive worker: never waits, polled on the loop.
 *
 * Private to archives.c. Embedded by the archive, whose `handle.data` it carries.
 */
#ifndef NK_FILES_ARCHIVE_PIPE_H
#define NK_FILES_ARCHIVE_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <uv.h>

#include "base/buf.h"

struct nk_archive_pipe {
    uv_poll_t poll;
    int fd; /* owned; -1: closed */
};

/* `write`: ours is the end to write to. *out_theirs waits as any pipe does. 0 or -errno. */
int nk_archive_pipe_open(struct nk_archive_pipe *p, uv_loop_t *loop, bool write, int *out_theirs);
/* True: `closed` will be called; false: it was closed before. */
bool nk_archive_pipe_close(struct nk_archive_pipe *p, uv_close_cb closed);

ssize_t nk_archive_pipe_read(const struct nk_archive_pipe *p, void *out,
                             size_t len); /* or -errno */
/* All that is there; false: the pipe is at its end or broken, or there is no memory. */
bool nk_archive_pipe_drain(const struct nk_archive_pipe *p, struct nk_buf *out);
size_t nk_archive_pipe_ready(const struct nk_archive_pipe *p); /* bytes that can be read */
/* Between the pipe and a socket that never waits, without a copy: how many bytes, or -errno; -EAGAIN:
 * the pipe is full, or the socket. A take of 0: it is not the pipe that is in the way. */
ssize_t nk_archive_pipe_take(const struct nk_archive_pipe *p, int socket, size_t max);
ssize_t nk_archive_pipe_send(const struct nk_archive_pipe *p, int socket, size_t max);
/* How much the pipe took, or -errno where nobody reads it any more. */
ssize_t nk_archive_pipe_write(const struct nk_archive_pipe *p, const void *data, size_t len);

#endif
