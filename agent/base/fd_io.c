#include "base/fd_io.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

int nk_fd_io_write(int fd, const void *data, size_t len)
{
    const uint8_t *at = data;

    while (len > 0) {
        ssize_t n = write(fd, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

ssize_t nk_fd_io_read(int fd, void *out, size_t len)
{
    uint8_t *to = out;
    size_t got = 0;

    while (got < len) {
        ssize_t n = read(fd, to + got, len - got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

ssize_t nk_fd_io_read_at(int fd, void *out, size_t len, off_t at)
{
    uint8_t *to = out;
    size_t got = 0;

    while (got < len) {
        ssize_t n = pread(fd, to + got, len - got, at + (off_t)got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}
