#include "cli/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/out.h"

#define GO_ON (-1)
#define PIECE (256u * 1024u)
#define TURNS 8 /* of one way before the other gets its own */
#define GONE (POLLERR | POLLHUP | POLLNVAL)

enum { ON_INPUT, ON_CONN, ON_OUTPUT, EVENTS };

struct lane {
    int from, to;
    mode_t to_kind; /* of S_IFMT */
    bool splices;   /* the kernel moves the bytes: one of the two is a pipe */
    bool from_ready, to_ready;
    bool ended;     /* `from` is at its end, and all of it was passed on */
    bool cut;       /* nobody takes what comes this way */
    bool may_reset; /* `from` ends so when its other side goes */
    uint8_t *data;  /* owned; NULL while it splices */
    size_t at, len;
};

static mode_t kind_of(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 ? st.st_mode & S_IFMT : 0;
}

static bool is_over(const struct lane *l)
{
    return l->ended || l->cut;
}

static bool wants_from(const struct lane *l)
{
    return !is_over(l) && !l->from_ready && l->at == l->len;
}

static bool wants_to(const struct lane *l)
{
    return !is_over(l) && !l->to_ready && (l->splices || l->at < l->len);
}

static bool can_go_on(const struct lane *l)
{
    return !is_over(l) && !wants_from(l) && !wants_to(l);
}

/* Only a socket can be asked to take what it can: a pipe after POLLOUT takes PIPE_BUF without
 * waiting, a file everything. */
static ssize_t put(const struct lane *l)
{
    const uint8_t *from = l->data + l->at;
    size_t len = l->len - l->at;

    if (l->to_kind == S_IFSOCK)
        return send(l->to, from, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (l->to_kind != S_IFREG && len > PIPE_BUF)
        len = PIPE_BUF;
    return write(l->to, from, len);
}

static bool is_passing(int error)
{
    return error == EAGAIN || error == EINTR;
}

static int from_failed(int error)
{
    return nk_out_fail_msg("cannot read: %s", strerror(error));
}

static int to_failed(struct lane *l, int error)
{
    if (error != EPIPE && error != ECONNRESET)
        return nk_out_fail_msg("cannot write: %s", strerror(error));
    l->cut = true;
    return GO_ON;
}

static int write_some(struct lane *l)
{
    ssize_t n = put(l);

    l->to_ready = l->to_kind == S_IFSOCK && n >= 0;
    if (n < 0)
        return is_passing(errno) ? GO_ON : to_failed(l, errno);
    l->at += (size_t)n;
    return GO_ON;
}

static int read_some(struct lane *l)
{
    ssize_t n = read(l->from, l->data, PIECE);

    l->from_ready = false;
    if (n < 0 && is_passing(errno))
        return GO_ON;
    if (n < 0 && !(l->may_reset && errno == ECONNRESET))
        return from_failed(errno);
    n = n < 0 ? 0 : n;
    l->at = 0;
    l->len = (size_t)n;
    l->ended = n == 0;
    return GO_ON;
}

static int use_buffer(struct lane *l)
{
    l->splices = false;
    l->data = malloc(PIECE);
    return l->data ? GO_ON : nk_out_fail_msg("out of memory");
}

static int splice_failed(struct lane *l, int error)
{
    if (error == EINVAL || error == ENOSYS)
        return use_buffer(l);
    /* Which side was not ready is not told: both are asked again. */
    l->from_ready = l->to_ready = false;
    if (is_passing(error))
        return GO_ON;
    return error == ECONNRESET && l->to_kind != S_IFSOCK ? from_failed(error) : to_failed(l, error);
}

static int splice_some(struct lane *l)
{
    ssize_t n = splice(l->from, NULL, l->to, NULL, PIECE, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

    l->ended = n == 0;
    return n >= 0 ? GO_ON : splice_failed(l, errno);
}

static int step(struct lane *l)
{
    int status = GO_ON;

    for (int turn = 0; turn < TURNS && status == GO_ON && can_go_on(l); turn++) {
        if (l->splices)
            status = splice_some(l);
        else
            status = l->at < l->len ? write_some(l) : read_some(l);
    }
    return status;
}

static void await(const struct lane *up, const struct lane *down, struct pollfd *p)
{
    int wait = can_go_on(up) || can_go_on(down) ? 0 : -1;
    short conn = (short)((wants_to(up) ? POLLOUT : 0) | (wants_from(down) ? POLLIN : 0));
    int n;

    /* What is not asked of is left out: an end that was seen once would be told for ever. */
    p[ON_INPUT] = (struct pollfd){.fd = wants_from(up) ? up->from : -1, .events = POLLIN};
    p[ON_CONN] = (struct pollfd){.fd = conn ? up->to : -1, .events = conn};
    p[ON_OUTPUT] = (struct pollfd){.fd = down->to, .events = wants_to(down) ? POLLOUT : 0};
    do
        n = poll(p, EVENTS, wait);
    while (n < 0 && errno == EINTR);
}

static void note(struct lane *up, struct lane *down, const struct pollfd *p)
{
    up->from_ready |= (p[ON_INPUT].revents & (POLLIN | GONE)) != 0;
    up->to_ready |= (p[ON_CONN].revents & (POLLOUT | GONE)) != 0;
    down->from_ready |= (p[ON_CONN].revents & (POLLIN | GONE)) != 0;
    down->to_ready |= (p[ON_OUTPUT].revents & POLLOUT) != 0;
    down->cut |= (p[ON_OUTPUT].revents & GONE) != 0;
}

static int run(struct lane *up, struct lane *down)
{
    struct pollfd p[EVENTS];
    bool shut = false;
    int status = GO_ON;

    while (status == GO_ON) {
        status = step(up);
        if (up->ended && !shut)
            shut = shutdown(up->to, SHUT_WR) == 0 || errno == ENOTCONN;
        if (status == GO_ON)
            status = step(down);
        if (status == GO_ON && down->cut)
            return NK_OUT_PIPE;
        if (status == GO_ON && down->ended)
            return 0;
        if (status != GO_ON)
            break;
        await(up, down, p);
        note(up, down, p);
    }
    return status;
}

static int open_lane(struct lane *l, int from, int to)
{

    *l = (struct lane){.from = from, .to = to, .to_kind = kind_of(to)};
    l->to_ready = l->to_kind == S_IFSOCK;
    l->splices = kind_of(from) == S_IFIFO || l->to_kind == S_IFIFO;
    return l->splices ? GO_ON : use_buffer(l);
}

int nk_relay_run(int in, int out, int conn)
{
    struct lane up = {0}, down = {0};
    int status = open_lane(&up, in, conn);

    up.may_reset = true;
    if (status == GO_ON)
        status = open_lane(&down, conn, out);
    if (status == GO_ON)
        status = run(&up, &down);
    free(up.data);
    free(down.data);
    return status;
}
