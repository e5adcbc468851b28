/*
 * Reading and writing all of it, whatever pieces the kernel makes of that, and whatever signals come.
 *
 * For descriptors that block. On one that does not, what would block is an error (-EAGAIN) with an
 * unknown part done: those have a queue of their own. Never on the loop. Pure functions.
 */
#ifndef NK_BASE_FD_IO_H
#define NK_BASE_FD_IO_H

#include <stddef.h>
#include <sys/types.h>

int nk_fd_io_write(int fd, const void *data, size_t len); /* 0 or -errno */

/* How many bytes came: fewer than `len` only where it ends. Or -errno. */
ssize_t nk_fd_io_read(int fd, void *out, size_t len);
ssize_t nk_fd_io_read_at(int fd, void *out, size_t len, off_t at);

#endif
