#include "http/sendfile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/job.h"
#include "base/patience.h"
#include "base/scope.h"
#include "http/inside.h"

struct nk_sendfile {
    struct nk_job job;
    struct nk_jobs *jobs; /* borrowed: outlives it */
    struct nk_req *req;   /* borrowed; NULL: nobody wants the file any more */
    int fd;               /* owned */
    uint64_t at;          /* the next byte to send */
    uint64_t end;
    uint64_t told;      /* up to here nk_sendfile_send has said so */
    struct nk_buf text; /* owned: a small file */
    bool small;
    bool running;
    bool full; /* the socket took no more */
    int error; /* -errno, of the job that failed */
    /* the job's, beside fd and text, while it runs */
    int socket; /* owned: a copy, because the connection may end first */
    uint64_t from;
    uint64_t to;
    struct nk_patience patience;
    int result; /* 0, -EAGAIN or -errno */
};

static int read_run(int fd, uint8_t *into, size_t len, uint64_t from)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = pread(fd, into + done, len - done, (off_t)(from + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        done += (size_t)n;
    }
    return 0;
}

static void read_small(struct nk_sendfile *f)
{
    size_t len = (size_t)(f->to - f->from);
    uint8_t *into = nk_buf_reserve(&f->text, len);

    f->result = into ? read_run(f->fd, into, len, f->from) : -ENOMEM;
    if (f->result == 0)
        nk_buf_commit(&f->text, len);
}

/* 0: a piece was sent. */
static int send_piece(struct nk_sendfile *f)
{
    off_t offset = (off_t)f->from;
    ssize_t n;

    do
        n = sendfile(f->socket, f->fd, &offset, (size_t)(f->to - f->from));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    f->from += (uint64_t)n;
    return n > 0 ? 0 : -EIO;
}

static void send_run(struct nk_sendfile *f)
{
    f->result = 0;
    while (f->from < f->to && f->result == 0) {
        f->result = send_piece(f);
        if (f->result == -EAGAIN && nk_patience_wait(&f->patience, f->socket, POLLOUT))
            f->result = 0;
    }
}

static void work(struct nk_job *job)
{
    struct nk_sendfile *f = NK_CONTAINER_OF(job, struct nk_sendfile, job);

    if (f->small)
        read_small(f);
    else
        send_run(f);
}

static void release(struct nk_sendfile *f)
{
    nk_close_fd(&f->fd);
    nk_close_fd(&f->socket);
    nk_buf_fini(&f->text);
    free(f);
}

static void done(struct nk_job *job, bool canceled)
{
    struct nk_sendfile *f = NK_CONTAINER_OF(job, struct nk_sendfile, job);

    f->running = false;
    if (!f->req) {
        release(f);
        return;
    }
    nk_close_fd(&f->socket);
    if (!f->small)
        f->at = f->from;
    f->full = f->result == -EAGAIN;
    if (canceled)
        f->error = -ECANCELED;
    else if (!f->full)
        f->error = f->result;
    nk_reply_wake(f->req);
}

static void start(struct nk_sendfile *f)
{
    f->running = true;
    nk_job_submit(f->jobs, &f->job);
}

static int start_sending(struct nk_sendfile *f, int socket)
{
    f->socket = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    if (f->socket < 0)
        return -errno;
    f->patience = nk_patience_of(f->jobs);
    f->from = f->at;
    f->to = f->end - f->at < f->patience.bytes ? f->end : f->at + f->patience.bytes;
    start(f);
    return -EINPROGRESS;
}

struct nk_sendfile *nk_sendfile_new(struct nk_jobs *jobs, struct nk_req *req, int fd,
                                    uint64_t offset, uint64_t len)
{
    struct nk_sendfile *f = calloc(1, sizeof *f);

    if (!f) {
        (void)close(fd);
        return NULL;
    }
    f->job.work = work;
    f->job.done = done;
    f->jobs = jobs;
    f->req = req;
    f->fd = fd;
    f->socket = -1;
    f->at = f->told = f->from = offset;
    f->end = f->to = offset + len;
    f->small = len <= NK_PIECE_SIZE;
    if (f->small)
        start(f);
    return f;
}

void nk_sendfile_free(struct nk_sendfile *f)
{
    if (!f)
        return;
    f->req = NULL;
    if (f->running)
        nk_job_cancel(&f->job);
    else
        release(f);
}

bool nk_sendfile_waits(const struct nk_sendfile *f)
{
    return f->running;
}

bool nk_sendfile_take(struct nk_sendfile *f, struct nk_buf *out)
{
    if (!f->small || f->running || f->error < 0)
        return false;
    nk_buf_fini(out);
    out->data = f->text.data;
    out->off = f->text.off;
    out->len = f->text.len;
    out->cap = f->text.cap;
    f->text = (struct nk_buf){0};
    return true;
}

ssize_t nk_sendfile_send(struct nk_sendfile *f, int socket)
{
    uint64_t sent = f->at - f->told;

    if (sent > 0) {
        f->told = f->at;
        return (ssize_t)sent;
    }
    if (f->error < 0)
        return f->error;
    if (f->full) {
        f->full = false;
        return -EAGAIN;
    }
    return start_sending(f, socket);
}

uint64_t nk_sendfile_left(const struct nk_sendfile *f)
{
    return f->end - f->told;
}
