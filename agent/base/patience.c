#include "base/patience.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/job.h"

#define BUSY (NK_JOB_THREADS / 2)
#define WAITS 64u
#define WAIT_MS 2
#define BYTES_BUSY (1024u * 1024u)
#define BYTES (16u * 1024u * 1024u)

struct nk_patience nk_patience_of(const struct nk_jobs *jobs)
{
    if (nk_jobs_active(jobs) >= BUSY)
        return (struct nk_patience){.bytes = BYTES_BUSY};
    return (struct nk_patience){.waits = WAITS, .bytes = BYTES};
}

bool nk_patience_wait(struct nk_patience *p, int fd, short events)
{
    struct pollfd look = {.fd = fd, .events = events};

    if (p->waits == 0)
        return false;
    p->waits--;
    return poll(&look, 1, WAIT_MS) == 1 && (look.revents & events) != 0;
}

ssize_t nk_patience_read(struct nk_patience *p, int fd, void *out, size_t len)
{
    ssize_t n;

    do
        n = read(fd, out, len);
    while ((n < 0 && errno == EINTR) ||
           (n < 0 && errno == EAGAIN && nk_patience_wait(p, fd, POLLIN)));
    return n;
}
