#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_line.h"

#define QUEUE_MAX (64 * 1024)
#define MSG_MAX 512
#define PIPE_STEP 4096 /* what a pipe that polls writable takes without blocking */

/* How to write without blocking, and without touching the flags that others share. */
enum mode {
    PLAIN,  /* a non-blocking description of our own, or a file, which never blocks */
    SOCKET, /* cannot be reopened, but each send can ask */
    POLLED, /* could be neither: asked by poll before each small write */
};

/* Read by any thread, hence atomic. */
static atomic_int threshold = NK_LOG_OFF;

/* The log has one instance, like standard error. The queue is not touched until it is needed, and
 * stands alone, since what begins as zeros takes no room in the file. */
static char queue[QUEUE_MAX];
static struct {
    int fd;
    enum mode mode;
    bool json;
    size_t start, len; /* the queued bytes: queue[start], len of them */
    uint64_t dropped;
    uint64_t untold; /* of these, not yet in a line that went out */
} the_log = {.fd = -1};

static int open_own(int fd, enum mode *out_mode)
{
    char path[40];
    struct stat st;
    int own = -1;

    if (fstat(fd, &st) < 0)
        return -1;
    *out_mode = S_ISSOCK(st.st_mode) ? SOCKET : PLAIN;
    if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (own < 0)
            *out_mode = POLLED;
    }
    return own >= 0 ? own : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

void nk_log_init(int fd, enum nk_log_level level, bool json)
{
    nk_log_fini();
    the_log.fd = open_own(fd, &the_log.mode);
    the_log.json = json;
    atomic_store(&threshold, the_log.fd >= 0 ? (int)level : NK_LOG_OFF);
}

void nk_log_fini(void)
{
    atomic_store(&threshold, NK_LOG_OFF);
    nk_log_flush();
    if (the_log.fd >= 0)
        (void)close(the_log.fd);
    the_log.fd = -1;
    the_log.start = 0;
    the_log.len = 0;
    the_log.dropped = 0;
    the_log.untold = 0;
}

bool nk_log_on(enum nk_log_level level)
{
    return (int)level >= atomic_load(&threshold) && level < NK_LOG_OFF;
}

static ssize_t write_some(const char *data, size_t len)
{
    struct pollfd ask = {.fd = the_log.fd, .events = POLLOUT};

    if (the_log.mode == SOCKET)
        return send(the_log.fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (the_log.mode == PLAIN)
        return write(the_log.fd, data, len);
    if (poll(&ask, 1, 0) != 1 || !(ask.revents & POLLOUT)) {
        errno = EAGAIN;
        return -1;
    }
    return write(the_log.fd, data, len < PIPE_STEP ? len : PIPE_STEP);
}

static void drop_lines(uint64_t n)
{
    the_log.dropped += n;
    the_log.untold += n;
}

static void drop_queue(void)
{
    for (size_t i = 0; i < the_log.len; i++) {
        if (queue[the_log.start + i] == '\n')
            drop_lines(1);
    }
    the_log.start = 0;
    the_log.len = 0;
}

void nk_log_flush(void)
{
    while (the_log.len > 0 && the_log.fd >= 0) {
        ssize_t n = write_some(queue + the_log.start, the_log.len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            drop_queue(); /* the reader is gone, or the disk is full */
            return;
        }
        the_log.start += (size_t)n;
        the_log.len -= (size_t)n;
    }
    the_log.start = 0;
}

/* All of a line or nothing. */
static bool enqueue(const char *line, size_t len)
{
    if (the_log.len + len > QUEUE_MAX)
        return false;
    if (the_log.start + the_log.len + len > QUEUE_MAX) {
        memmove(queue, queue + the_log.start, the_log.len);
        the_log.start = 0;
    }
    memcpy(queue + the_log.start + the_log.len, line, len);
    the_log.len += len;
    return true;
}

void nk_log_write(enum nk_log_level level, const char *event, const char *msg,
                  const struct nk_log_field *fields)
{
    struct nk_log_line line;

    if (!nk_log_on(level))
        return;
    nk_log_line_begin(&line, the_log.json, level, nk_clock_wall_ms());
    nk_log_line_head(&line, event, msg);
    for (; fields && fields->key; fields++)
        nk_log_line_field(&line, fields);
    nk_log_line_end(&line, the_log.untold);
    if (!enqueue(line.text, line.len)) {
        drop_lines(1);
        return;
    }
    the_log.untold = 0;
    nk_log_flush();
}

void nk_log_msg(enum nk_log_level level, const char *event, const char *fmt, ...)
{
    char msg[MSG_MAX];
    va_list args;

    if (!nk_log_on(level))
        return;
    va_start(args, fmt);
    if (vsnprintf(msg, sizeof msg, fmt, args) < 0)
        msg[0] = '\0';
    va_end(args);
    nk_log_write(level, event, msg, NULL);
}

bool nk_log_pending(void)
{
    return the_log.len > 0;
}

int nk_log_fd(void)
{
    return the_log.fd;
}

uint64_t nk_log_dropped(void)
{
    return the_log.dropped;
}
