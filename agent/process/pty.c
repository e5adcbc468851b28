#include "process/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/scope.h"

#define SLAVE_FLAGS (O_RDWR | O_NOCTTY | O_CLOEXEC)
#define MASTER_FLAGS (SLAVE_FLAGS | O_NONBLOCK)
#define SLAVE_MODE 0600
#define EOF_BYTE 4 /* Ctrl-D */

/* An instance of devpts need not be the one that /dev/ptmx belongs to. */
static int open_master(void)
{
    int fd = open("/dev/ptmx", MASTER_FLAGS);

    if (fd < 0 && (errno == ENOENT || errno == EACCES || errno == ENODEV))
        fd = open("/dev/pts/ptmx", MASTER_FLAGS);
    return fd < 0 ? -errno : fd;
}

static int open_by_name(int master)
{
    unsigned number;
    char path[32];
    int fd;

    if (ioctl(master, TIOCGPTN, &number) < 0)
        return -errno;
    (void)snprintf(path, sizeof path, "/dev/pts/%u", number);
    fd = open(path, SLAVE_FLAGS | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}

/* By the master where the kernel can: a name leads to the wrong terminal where another instance of
 * devpts is mounted. */
static int open_slave(int master)
{
    int locked = 0;
    int fd;

    if (ioctl(master, TIOCSPTLCK, &locked) < 0)
        return -errno;
    fd = ioctl(master, TIOCGPTPEER, SLAVE_FLAGS);
    return fd < 0 ? open_by_name(master) : fd;
}

/* Not every kernel begins with them. */
static int set_habits(int slave)
{
    static const struct {
        uint8_t index, byte;
    } bytes[] = {
        {VINTR, 3},     {VQUIT, 28},  {VERASE, 127}, {VKILL, 21}, {VEOF, EOF_BYTE}, {VTIME, 0},
        {VMIN, 1},      {VSUSP, 26},  {VSTART, 17},  {VSTOP, 19}, {VREPRINT, 18},   {VWERASE, 23},
        {VDISCARD, 15}, {VLNEXT, 22}, {VEOL, 0},     {VEOL2, 0},
    };
    struct termios t;

    if (tcgetattr(slave, &t) < 0)
        return -errno;
    t.c_iflag = ICRNL | IXON | IUTF8;
    t.c_oflag = OPOST | ONLCR;
    t.c_lflag = ISIG | ICANON | IEXTEN | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE;
    for (size_t i = 0; i < NK_COUNT(bytes); i++)
        t.c_cc[bytes[i].index] = bytes[i].byte;
    return tcsetattr(slave, TCSANOW, &t) < 0 ? -errno : 0;
}

/* A kernel that does not let us give it away leaves it to root: the command has it open already. */
static void give_away(int slave, const struct nk_creds *owner)
{
    if (!owner || geteuid() != 0)
        return;
    (void)fchmod(slave, SLAVE_MODE);
    (void)fchown(slave, owner->uid, owner->gid);
}

int nk_pty_open(unsigned cols, unsigned rows, const struct nk_creds *owner, int *out_master,
                int *out_slave)
{
    nk_auto_fd int master = open_master();
    nk_auto_fd int slave = -1;
    int rc;

    if (master < 0)
        return master;
    slave = open_slave(master);
    if (slave < 0)
        return slave;
    rc = set_habits(slave);
    if (rc == 0)
        rc = nk_pty_resize(master, cols, rows);
    if (rc < 0)
        return rc;
    give_away(slave, owner);
    *out_master = nk_take_fd(&master);
    *out_slave = nk_take_fd(&slave);
    return 0;
}

int nk_pty_resize(int master, unsigned cols, unsigned rows)
{
    const struct winsize size = {.ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows};

    return ioctl(master, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

pid_t nk_pty_foreground(int master, pid_t session)
{
    pid_t group = tcgetpgrp(master);
    pid_t owner;

    if (group <= 0)
        return 0;
    owner = getsid(group);
    if (owner < 0 && errno == ESRCH) /* its leader is gone; members keep the number from others */
        return group;
    return owner == session ? group : 0;
}

static bool ends_line(const struct termios *t, uint8_t byte)
{
    static const uint8_t flushing[] = {VINTR, VQUIT, VSUSP};
    static const uint8_t ending[] = {VEOF, VEOL, VEOL2, VKILL};

    if (byte == '\n' || (byte == '\r' && t->c_iflag & ICRNL))
        return true;
    if (byte == 0) /* in c_cc it means none */
        return false;
    for (size_t i = 0; i < NK_COUNT(ending); i++) {
        if (byte == t->c_cc[ending[i]])
            return true;
    }
    for (size_t i = 0; i < NK_COUNT(flushing) && t->c_lflag & ISIG && !(t->c_lflag & NOFLSH); i++) {
        if (byte == t->c_cc[flushing[i]])
            return true;
    }
    return false;
}

unsigned nk_pty_end_of_input(int master, uint8_t last, uint8_t *out_byte)
{
    struct termios t;

    *out_byte = EOF_BYTE;
    if (tcgetattr(master, &t) < 0)
        return 1;
    if (t.c_cc[VEOF] != 0)
        *out_byte = t.c_cc[VEOF];
    if (!(t.c_lflag & ICANON))
        return 1;
    if (t.c_cc[VEOF] == 0)
        return 0;
    return ends_line(&t, last) ? 1 : 2;
}
