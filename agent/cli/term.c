#include "cli/term.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

int nk_term_make_raw(struct nk_term *t, int fd)
{
    struct termios raw;

    if (tcgetattr(fd, &t->before) < 0)
        return -errno;
    raw = t->before;
    cfmakeraw(&raw);
    if (tcsetattr(fd, TCSANOW, &raw) < 0)
        return -errno;
    t->fd = fd;
    t->raw = true;
    return 0;
}

void nk_term_restore(struct nk_term *t)
{
    if (!t->raw)
        return;
    t->raw = false;
    /* What is typed and not read was for the other side. Nothing here waits for a stopped terminal. */
    (void)tcflush(t->fd, TCIFLUSH);
    (void)tcsetattr(t->fd, TCSANOW, &t->before);
}

bool nk_term_size(unsigned *out_cols, unsigned *out_rows)
{
    for (int fd = STDIN_FILENO; fd <= STDOUT_FILENO; fd++) {
        struct winsize size;

        if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 || size.ws_row == 0)
            continue;
        *out_cols = size.ws_col;
        *out_rows = size.ws_row;
        return true;
    }
    return false;
}
