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

/* From where the descriptor stands, or, with `at` not negative, from there. */
static ssize_t fill(int fd, uint8_t *to, size_t len, off_t at)
{
    size_t got = 0;

    while (got < len) {
        ssize_t n = at < 0 ? read(fd, to + got, len - got)
                           : pread(fd, to + got, len - got, at + (off_t)got);

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

ssize_t nk_fd_io_read(int fd, void *out, size_t len)
{
    return fill(fd, out, len, -1);
}

ssize_t nk_fd_io_read_at(int fd, void *out, size_t len, off_t at)
{
    return at < 0 ? -EINVAL : fill(fd, out, len, at);
}
