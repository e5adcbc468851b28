#include "process/starters.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"

#define THREAD_STACK (256u * 1024u)

char *nk_starter_stack_new(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *stack = mmap(NULL, NK_STARTER_STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

    if (stack == MAP_FAILED)
        return NULL;
    if (mprotect(stack, page, PROT_NONE) == 0)
        return stack;
    (void)munmap(stack, NK_STARTER_STACK);
    return NULL;
}

void nk_starter_stack_free(char *stack)
{
    if (stack)
        (void)munmap(stack, NK_STARTER_STACK);
}

void nk_starter_begin(struct nk_starter *st, struct nk_spawn *s)
{
    uv_mutex_lock(&st->all->lock);
    st->current = s;
    st->begun_ms = nk_clock_mono_ms();
    uv_mutex_unlock(&st->all->lock);
}

void nk_starter_end(struct nk_starter *st)
{
    uv_mutex_lock(&st->all->lock);
    st->current = NULL;
    if (st->all->passed_over)
        uv_cond_broadcast(&st->all->more);
    st->all->passed_over = false;
    uv_mutex_unlock(&st->all->lock);
}

/*
 * Under the lock: so the starter still waits for this child, and `reaped` is the loop's to read.
 * Between its change of user and its exec the user can stop the child, so it is woken again and
 * again; each time it gets further than the stopping that meanwhile goes on. After it, a stop is the
 * program's own, though the starter may not have come to its end yet.
 */
static void hurry(struct nk_starter *st)
{
    struct nk_spawn *s = st->current;
    pid_t pid = s ? atomic_load(&s->start.pid) : 0;
    uint64_t taken_ms = nk_clock_mono_ms() - st->begun_ms;

    if (pid <= 0 || s->start.reaped || !atomic_load(&s->before_exec) ||
        taken_ms < NK_STARTER_NUDGE_MS)
        return;
    if (taken_ms < st->all->deadline_ms) {
        (void)kill(pid, SIGCONT);
        return;
    }
    s->killed = true;
    (void)kill(pid, SIGKILL);
}

/* The loop cannot watch over its own start. It needs no watching while no process of the user is
 * alive, but one that somebody brought into the sandbox from outside is not seen by us. */
static void wait_for_work(struct nk_starter *st)
{
    struct nk_starters *t = st->all;
    uint64_t starts = t->own_starts;
    uint64_t tick_ns = (uint64_t)t->deadline_ms * 500000u;

    if (st != &t->each[0] || !t->guarded) {
        uv_cond_wait(&t->more, &t->lock);
        return;
    }
    if (uv_cond_timedwait(&t->more, &t->lock, tick_ns) == 0)
        return;
    hurry(&t->own);
    t->guarded = t->own.current || starts != t->own_starts;
}

/* A user can hold up its own starts, by stopping them. With both threads it would hold up
 * everybody's. */
static bool holds_up(const struct nk_starters *t, const void *share)
{
    uint64_t now = nk_clock_mono_ms();

    for (unsigned i = 0; share && i < NK_STARTER_THREADS; i++) {
        const struct nk_starter *st = &t->each[i];

        if (st->current && st->current->share == share && now - st->begun_ms >= NK_STARTER_HELD_MS)
            return true;
    }
    return false;
}

/* The first that may have a thread now; NULL: none may. */
static struct nk_spawn *choose(struct nk_starters *t)
{
    for (struct nk_list *n = t->queue.next; n != &t->queue; n = n->next) {
        struct nk_spawn *s = nk_list_entry(n, struct nk_spawn, link);

        if (!holds_up(t, s->share))
            return s;
    }
    t->passed_over = !nk_list_empty(&t->queue);
    return NULL;
}

/* NULL: the threads end. */
static struct nk_spawn *next_start(struct nk_starter *st)
{
    struct nk_starters *t = st->all;
    struct nk_spawn *s = NULL;

    uv_mutex_lock(&t->lock);
    while (!t->stopping && !(s = choose(t)))
        wait_for_work(st);
    if (t->stopping)
        s = NULL;
    if (s) {
        nk_list_remove(&s->link);
        t->queued--;
    }
    uv_mutex_unlock(&t->lock);
    return s;
}

/* What the loop's thread has given up, this one has not got: it was made by it. */
static void run_thread(void *arg)
{
    struct nk_starter *st = arg;
    struct nk_starters *t = st->all;
    uint64_t all = UINT64_MAX;
    struct nk_spawn *s;

    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all);
    if (!t->own.bounded)
        (void)nk_confine_drop_bounding();
    st->bounded = t->own.bounded || nk_confine_bounded();
    /* Where this fails each child tries it again, and its start fails by that. */
    st->confined = t->own.confined || (!t->filter_foreign && nk_confine_apply(t->filter) == 0);
    while ((s = next_start(st))) {
        t->run(st, s);
        uv_mutex_lock(&t->lock);
        nk_list_append(&t->over, &s->link);
        uv_mutex_unlock(&t->lock);
        (void)uv_async_send(t->over_async);
    }
}

/* The child keeps only this descriptor beside 0 to 2, so it must not be one of them. */
static int open_status(int status[2])
{
    int high;

    if (pipe2(status, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    if (status[1] > 2)
        return 0;
    high = fcntl(status[1], F_DUPFD_CLOEXEC, 3);
    if (high < 0)
        return -errno;
    (void)close(status[1]);
    status[1] = high;
    return 0;
}

static int init_starter(struct nk_starter *st, struct nk_starters *t)
{
    st->all = t;
    st->status[0] = st->status[1] = -1;
    st->stack = nk_starter_stack_new();
    return st->stack ? open_status(st->status) : -ENOMEM;
}

static void fini_starter(struct nk_starter *st)
{
    nk_starter_stack_free(st->stack);
    nk_close_fd(&st->status[0]);
    nk_close_fd(&st->status[1]);
}

static int start_threads(struct nk_starters *t)
{
    const uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE,
                                         .stack_size = THREAD_STACK};

    for (; t->running < NK_STARTER_THREADS; t->running++) {
        int rc = init_starter(&t->each[t->running], t);

        if (rc == 0)
            rc = uv_thread_create_ex(&t->thread[t->running], &options, run_thread,
                                     &t->each[t->running]);
        if (rc < 0) {
            fini_starter(&t->each[t->running]);
            return rc;
        }
    }
    return 0;
}

int nk_starters_init(struct nk_starters *t)
{
    int rc;

    nk_list_init(&t->queue);
    nk_list_init(&t->over);
    rc = uv_mutex_init(&t->lock);
    if (rc < 0)
        return rc;
    rc = uv_cond_init(&t->more);
    if (rc < 0) {
        uv_mutex_destroy(&t->lock);
        return rc;
    }
    t->own.bounded = nk_confine_bounded();
    rc = init_starter(&t->own, t);
    if (rc == 0)
        rc = start_threads(t);
    if (rc < 0)
        nk_starters_fini(t);
    return rc;
}

void nk_starters_fini(struct nk_starters *t)
{
    uv_mutex_lock(&t->lock);
    t->stopping = true;
    uv_cond_broadcast(&t->more);
    uv_mutex_unlock(&t->lock);
    for (unsigned i = 0; i < t->running; i++) {
        (void)uv_thread_join(&t->thread[i]);
        fini_starter(&t->each[i]);
    }
    fini_starter(&t->own);
    uv_cond_destroy(&t->more);
    uv_mutex_destroy(&t->lock);
}

bool nk_starters_put(struct nk_starters *t, struct nk_spawn *s)
{
    bool room;

    s->deadline_ms = nk_clock_mono_ms() + NK_STARTER_QUEUE_MS;
    uv_mutex_lock(&t->lock);
    room = t->queued < NK_STARTER_QUEUE_MAX;
    if (room) {
        t->queued++;
        nk_list_append(&t->queue, &s->link);
    }
    uv_mutex_unlock(&t->lock);
    if (room)
        uv_cond_signal(&t->more);
    return room;
}

void nk_starters_take(struct nk_starters *t, struct nk_list *out)
{
    uv_mutex_lock(&t->lock);
    while (!nk_list_empty(&t->over)) {
        struct nk_list *first = t->over.next;

        nk_list_remove(first);
        nk_list_append(out, first);
    }
    uv_mutex_unlock(&t->lock);
}

void nk_starters_expire(struct nk_starters *t, struct nk_list *out)
{
    uint64_t now = nk_clock_mono_ms();

    uv_mutex_lock(&t->lock);
    for (unsigned i = 0; i < t->running; i++)
        hurry(&t->each[i]);
    while (!nk_list_empty(&t->queue)) {
        struct nk_spawn *s = nk_list_entry(t->queue.next, struct nk_spawn, link);

        if (now < s->deadline_ms)
            break;
        nk_list_remove(&s->link);
        nk_list_append(out, &s->link);
        t->queued--;
    }
    uv_mutex_unlock(&t->lock);
}

void nk_starters_guard(struct nk_starters *t)
{
    bool begins;

    uv_mutex_lock(&t->lock);
    t->own_starts++;
    begins = !t->guarded;
    t->guarded = true;
    uv_mutex_unlock(&t->lock);
    if (begins)
        uv_cond_broadcast(&t->more);
}
