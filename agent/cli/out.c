#include "cli/out.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A write of PIPE_BUF never blocks after POLLOUT, so Ctrl-C is heard also under a full pipe. */
static size_t piece_max(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? SSIZE_MAX : PIPE_BUF;
}

static bool is_control(char c)
{
    return (unsigned char)c < ' ' || c == 0x7f;
}

static int write_failed(int fd, int sys)
{
    if (sys == EPIPE)
        return NK_OUT_PIPE;
    return nk_out_fail_msg("cannot write standard %s: %s", fd == STDERR_FILENO ? "error" : "output",
                           strerror(sys));
}

int nk_out_write(const struct nk_interrupt *i, int fd, const void *data, size_t len)
{
    static const struct nk_interrupt none = {.fd = -1};
    size_t max = piece_max(fd);
    const char *p = data;

    while (len > 0) {
        int rc = nk_interrupt_wait(i ? i : &none, fd, POLLOUT, -1);
        ssize_t n;

        if (rc != 0)
            return rc > 0 ? rc : write_failed(fd, -rc);
        n = write(fd, p, len < max ? len : max);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return write_failed(fd, errno);
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

int nk_out_buf(const struct nk_buf *buf)
{
    if (buf->failed)
        return nk_out_fail_msg("out of memory");
    return nk_out_write(NULL, STDOUT_FILENO, nk_buf_front(buf), nk_buf_left(buf));
}

int nk_out_fail(const struct nk_err *err)
{
    return nk_out_fail_msg("%s", err->msg);
}

int nk_out_fail_msg(const char *fmt, ...)
{
    char msg[512];
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(msg, sizeof msg, fmt, args);
    va_end(args);
    if (n < 0)
        msg[0] = '\0';
    for (char *c = msg; *c != '\0'; c++)
        *c = is_control(*c) ? '?' : *c;
    (void)dprintf(STDERR_FILENO, "nookd: %s\n", msg);
    return NK_OUT_FAILED;
}

void nk_out_plain(struct nk_buf *out, const char *s)
{
    for (; *s != '\0'; s++)
        nk_buf_add_char(out, is_control(*s) ? '?' : *s);
}
