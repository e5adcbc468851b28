#include "http/sendfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/job.h"
#include "base/scope.h"
#include "http/inside.h"

#define WINDOW (1024u * 1024u)
#define SCRATCH 65536u

struct nk_sendfile {
    struct nk_job job;
    struct nk_jobs *jobs; /* borrowed: outlives it */
    struct nk_req *req;   /* borrowed; NULL: nobody wants the file any more */
    int fd;               /* owned */
    uint64_t at;          /* the next byte to send */
    uint64_t end;
    uint64_t ready;     /* up to here it has been read */
    struct nk_buf text; /* owned: a small file */
    bool small;
    bool running;
    int error; /* -errno, of the job that failed */
    /* the job's, beside fd and text, while it runs */
    uint64_t from;
    uint64_t to;
    int result; /* 0 or -errno */
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

/* Reading is the one way to know that the pages are there; readahead only asks for them. */
static void read_window(struct nk_sendfile *f)
{
    nk_auto_free uint8_t *scratch = malloc(SCRATCH);

    f->result = scratch ? 0 : -ENOMEM;
    for (uint64_t at = f->from; at < f->to && f->result == 0; at += SCRATCH) {
        uint64_t left = f->to - at;

        f->result = read_run(f->fd, scratch, left < SCRATCH ? (size_t)left : SCRATCH, at);
    }
}

static void work(struct nk_job *job)
{
    struct nk_sendfile *f = NK_CONTAINER_OF(job, struct nk_sendfile, job);

    if (f->small)
        read_small(f);
    else
        read_window(f);
}

static void release(struct nk_sendfile *f)
{
    nk_close_fd(&f->fd);
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
    f->error = canceled ? -ECANCELED : f->result;
    if (f->error == 0)
        f->ready = f->to;
    nk_reply_wake(f->req);
}

static void read_ahead(struct nk_sendfile *f)
{
    uint64_t left = f->end - f->ready;

    if (f->running || left == 0 || f->error < 0)
        return;
    f->from = f->ready;
    f->to = f->ready + (left < WINDOW ? left : WINDOW);
    f->running = true;
    nk_job_submit(f->jobs, &f->job);
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
    f->at = f->ready = offset;
    f->end = offset + len;
    f->small = len <= NK_PIECE_SIZE;
    read_ahead(f);
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
    return f->running && f->at == f->ready;
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
    off_t offset = (off_t)f->at;
    ssize_t n;

    /* Every window but the first is read while the one before it is sent. */
    if (f->ready - f->at <= WINDOW)
        read_ahead(f);
    if (f->at == f->ready)
        return f->error < 0 ? f->error : -EINPROGRESS;
    do
        n = sendfile(socket, f->fd, &offset, (size_t)(f->ready - f->at));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    f->at += (uint64_t)n;
    return n > 0 ? n : -EIO;
}

uint64_t nk_sendfile_left(const struct nk_sendfile *f)
{
    return f->end - f->at;
}
