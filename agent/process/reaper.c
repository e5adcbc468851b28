#include "process/reaper.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUCKETS 64
#define PASS_MAX 256 /* children a pass; the loop turns once before the next */

struct nk_reaper {
    uv_poll_t poll;
    uv_idle_t again; /* runs while a pass was cut short */
    int fd;          /* owned: a signalfd for SIGCHLD */
    unsigned open_handles;
    bool adopts; /* orphans below us come to us */
    bool empty;  /* the last wait said ECHILD, and no start has ended in a child since */
    uint64_t count;
    struct nk_list starts;
    struct nk_reaper_watch *watches[BUCKETS]; /* borrowed; by pid */
    void (*on_pass)(void *ctx);
    void *pass_ctx;
};

static struct nk_reaper_watch **bucket(struct nk_reaper *r, pid_t pid)
{
    return &r->watches[(unsigned)pid % BUCKETS];
}

static struct nk_reaper_watch *take_watch(struct nk_reaper *r, pid_t pid)
{
    for (struct nk_reaper_watch **at = bucket(r, pid); *at; at = &(*at)->next) {
        struct nk_reaper_watch *w = *at;

        if (w->pid == pid) {
            *at = w->next;
            w->next = NULL;
            return w;
        }
    }
    return NULL;
}

static void tell(struct nk_reaper *r, pid_t pid, int status, const struct rusage *usage)
{
    struct nk_reaper_watch *w;

    for (struct nk_list *at = r->starts.next; at != &r->starts; at = at->next) {
        struct nk_reaper_start *start = nk_list_entry(at, struct nk_reaper_start, link);

        if (!start->reaped && atomic_load(&start->pid) == pid) {
            start->wait_status = status;
            start->usage = *usage;
            start->reaped = true;
            return;
        }
    }
    w = take_watch(r, pid);
    if (w)
        w->fn(w, status, usage);
}

static void on_again(uv_idle_t *handle);

static void pass(struct nk_reaper *r)
{
    unsigned reaped = 0;

    while (reaped < PASS_MAX) {
        struct rusage usage;
        int status;
        pid_t pid = wait4(-1, &status, WNOHANG, &usage);

        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0) {
            r->empty = pid < 0 && errno == ECHILD;
            break;
        }
        reaped++;
        r->count++;
        tell(r, pid, status, &usage);
    }
    if (reaped == PASS_MAX)
        (void)uv_idle_start(&r->again, on_again);
    else
        (void)uv_idle_stop(&r->again);
    if (reaped > 0 && r->on_pass)
        r->on_pass(r->pass_ctx);
}

static void on_again(uv_idle_t *handle)
{
    pass(handle->data);
}

static void on_signal(uv_poll_t *handle, int status, int events)
{
    struct nk_reaper *r = handle->data;
    struct signalfd_siginfo info;

    (void)status;
    (void)events;
    /* The signal is taken before the pass: a child that ends during it signals anew. */
    (void)!read(r->fd, &info, sizeof info);
    pass(r);
}

static void on_closed(uv_handle_t *handle)
{
    struct nk_reaper *r = handle->data;

    if (--r->open_handles > 0)
        return;
    (void)close(r->fd);
    free(r);
}

/* A parent that ignored SIGCHLD would have made the kernel throw statuses away. */
static int open_signal(int *out_fd)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t set;
    int fd;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    if (sigaction(SIGCHLD, &plain, NULL) < 0 || pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return -errno;
    fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    *out_fd = fd;
    return 0;
}

int nk_reaper_open(uv_loop_t *loop, struct nk_reaper **out)
{
    struct nk_reaper *r = calloc(1, sizeof *r);
    int adopts = 0;
    int rc;

    if (!r)
        return -ENOMEM;
    nk_list_init(&r->starts);
    rc = open_signal(&r->fd);
    if (rc < 0)
        goto no_fd;
    rc = uv_poll_init(loop, &r->poll, r->fd);
    if (rc < 0)
        goto no_poll;
    (void)uv_idle_init(loop, &r->again);
    r->poll.data = r;
    r->again.data = r;
    r->open_handles = 2;
    (void)uv_poll_start(&r->poll, UV_READABLE, on_signal);
    (void)prctl(PR_GET_CHILD_SUBREAPER, &adopts);
    r->adopts = getpid() == 1 || adopts == 1;
    pass(r);
    *out = r;
    return 0;

no_poll:
    (void)close(r->fd);
no_fd:
    free(r);
    return rc;
}

void nk_reaper_close(struct nk_reaper **slot)
{
    struct nk_reaper *r = *slot;

    if (!r)
        return;
    *slot = NULL;
    r->on_pass = NULL;
    uv_close((uv_handle_t *)&r->poll, on_closed);
    uv_close((uv_handle_t *)&r->again, on_closed);
}

int nk_reaper_adopt(struct nk_reaper *r)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1L) < 0)
        return -errno;
    r->adopts = true;
    return 0;
}

bool nk_reaper_adopts(const struct nk_reaper *r)
{
    return r->adopts;
}

void nk_reaper_watch(struct nk_reaper *r, struct nk_reaper_watch *w)
{
    struct nk_reaper_watch **head = bucket(r, w->pid);

    w->next = *head;
    *head = w;
}

void nk_reaper_forget(struct nk_reaper *r, struct nk_reaper_watch *w)
{
    for (struct nk_reaper_watch **at = bucket(r, w->pid); *at; at = &(*at)->next) {
        if (*at == w) {
            *at = w->next;
            w->next = NULL;
            return;
        }
    }
}

void nk_reaper_expect(struct nk_reaper *r, struct nk_reaper_start *start)
{
    atomic_store(&start->pid, 0);
    start->reaped = false;
    nk_list_append(&r->starts, &start->link);
}

void nk_reaper_settle(struct nk_reaper *r, struct nk_reaper_start *start)
{
    nk_list_remove(&start->link);
    if (start->pid != 0 && !start->reaped)
        r->empty = false;
}

void nk_reaper_deliver(struct nk_reaper *r, const struct nk_reaper_start *start)
{
    struct nk_reaper_watch *w = start->reaped ? take_watch(r, start->pid) : NULL;

    if (w)
        w->fn(w, start->wait_status, &start->usage);
}

int nk_reaper_take_probe(pid_t pid)
{
    int status;
    pid_t got;

    do
        got = waitpid(pid, &status, __WCLONE);
    while (got < 0 && errno == EINTR);
    return got == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool nk_reaper_childless(const struct nk_reaper *r)
{
    return r->adopts && r->empty && nk_list_empty(&r->starts);
}

void nk_reaper_on_pass(struct nk_reaper *r, void (*fn)(void *ctx), void *ctx)
{
    r->on_pass = fn;
    r->pass_ctx = ctx;
}

uint64_t nk_reaper_count(const struct nk_reaper *r)
{
    return r->count;
}
