#include "files/archives.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/scope.h"
#include "files/archive_inside.h"
#include "files/tar_note.h"
#include "process/reaper.h"
#include "process/spawn.h"

#define CHECK_MS 5000 /* how often it is looked whether something moved */

struct nk_archives {
    struct nk_archives_config cfg;
    struct nk_list list;
    unsigned count;
};

static const char *const worker_argv[] = {"/proc/self/exe", "__worker", "archive", NULL};

static void maybe_free(struct nk_archive *a)
{
    if (!a->closed || a->open_handles > 0 || a->starting || a->running)
        return;
    nk_list_remove(&a->link);
    if (a->all)
        a->all->count--;
    nk_buf_fini(&a->pending);
    nk_buf_fini(&a->notes);
    nk_archive_note_fini(&a->last);
    free(a);
}

static void on_closed(uv_handle_t *handle)
{
    struct nk_archive *a = handle->data;

    a->open_handles--;
    maybe_free(a);
}

void nk_archive_close_pipe(struct nk_archive_pipe *p)
{
    (void)nk_archive_pipe_close(p, on_closed);
}

static void close_handles(struct nk_archive *a)
{
    nk_archive_close_pipe(&a->in);
    nk_archive_close_pipe(&a->out);
    nk_archive_close_pipe(&a->note);
    if (!uv_is_closing((uv_handle_t *)&a->timer))
        uv_close((uv_handle_t *)&a->timer, on_closed);
}

static void finish(struct nk_archive *a)
{
    const struct nk_err *err = a->last.err.code == NK_OK ? NULL : &a->last.err;

    if (a->over)
        return;
    a->over = true;
    nk_archive_close_pipe(&a->in);
    if (a->closed)
        return;
    nk_archive_tell_more(a);
    a->events.over(a->events.ctx, &a->last.result, err);
}

static void fail(struct nk_archive *a, enum nk_code code, const char *what)
{
    if (a->over)
        return;
    nk_archive_note_fini(&a->last);
    (void)nk_fail(&a->last.err, code, "the archive worker %s", what);
    nk_archive_kill(a);
    finish(a);
}

static bool waits_for_worker(const struct nk_archive *a)
{
    if (a->over || a->told || !a->ready)
        return !a->over;
    return a->packing ? a->hungry : a->ended || a->full || nk_buf_left(&a->pending) > 0;
}

static void on_timer(uv_timer_t *timer)
{
    struct nk_archive *a = timer->data;
    uint64_t still_ms = nk_clock_mono_ms() - a->moved_ms;

    if (a->closed)
        nk_archive_kill(a);
    else if (!waits_for_worker(a))
        nk_archive_moved(a);
    else if (still_ms >= (a->told ? NK_ARCHIVE_LEAVE_MS : NK_ARCHIVE_STALL_MS))
        fail(a, NK_INTERNAL, "did not go on and was ended");
}

static void take_notes(struct nk_archive *a)
{
    bool open = a->note.fd >= 0 && nk_archive_pipe_drain(&a->note, &a->notes);
    enum nk_archive_said said = NK_ARCHIVE_SAID_NOTHING;

    nk_archive_moved(a);
    while (!a->over && !a->told && !a->closed &&
           (said = nk_archive_note_take(&a->notes, &a->last)) > 0) {
        if (said == NK_ARCHIVE_SAID_END)
            a->told = true;
        else if (!a->ready) {
            a->ready = true;
            a->events.ready(a->events.ctx);
        }
    }
    if (said == NK_ARCHIVE_SAID_NONSENSE)
        fail(a, NK_INTERNAL, "said something that cannot be understood");
    if (!open)
        nk_archive_close_pipe(&a->note);
}

static void on_note(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    take_notes(poll->data);
}

static void on_reaped(struct nk_reaper_watch *w, int wait_status, const struct rusage *usage)
{
    struct nk_archive *a = NK_CONTAINER_OF(w, struct nk_archive, watch);

    (void)usage;
    a->running = false;
    take_notes(a);
    if (a->told)
        finish(a);
    else
        fail(a, NK_INTERNAL,
             WIFSIGNALED(wait_status) ? "was ended by a signal" : "ended without a word");
    if (a->closed)
        close_handles(a);
    else
        nk_archive_tell_more(a); /* bytes of it may be left, but no more will come */
    maybe_free(a);
}

static void watch(struct nk_archive *a, pid_t pid)
{
    a->watch.pid = pid;
    a->watch.fn = on_reaped;
    a->running = true;
    if (a->closed)
        nk_archive_kill(a);
    if (a->all) {
        nk_reaper_watch(a->all->cfg.reaper, &a->watch);
        return;
    }
    a->running = false;
    maybe_free(a);
}

static void on_started(struct nk_spawn *s, pid_t pid, const struct nk_err *err)
{
    struct nk_archive *a = NK_CONTAINER_OF(s, struct nk_archive, spawn);

    a->starting = false;
    if (pid > 0) {
        watch(a, pid);
        return;
    }
    if (a->closed) {
        close_handles(a);
        maybe_free(a);
        return;
    }
    a->last.err = *err;
    /* It is not a command of the client that could not be started. */
    if (err->code == NK_EXEC_FAILED)
        (void)nk_fail(&a->last.err, NK_INTERNAL, "the archive worker: %.200s", err->msg);
    finish(a);
}

static int open_pipe(struct nk_archive *a, struct nk_archive_pipe *p, bool write, int *out_theirs)
{
    int rc = nk_archive_pipe_open(p, a->all->cfg.loop, write, out_theirs);

    if (rc < 0)
        return rc;
    p->poll.data = a;
    a->open_handles++;
    return 0;
}

static int open_pipes(struct nk_archive *a)
{
    int rc = open_pipe(a, &a->in, true, &a->spawn.stdio[0]);

    if (rc == 0)
        rc = open_pipe(a, &a->out, false, &a->spawn.stdio[1]);
    if (rc == 0)
        rc = open_pipe(a, &a->note, false, &a->spawn.stdio[2]);
    return rc < 0 ? rc : uv_poll_start(&a->note.poll, UV_READABLE, on_note);
}

static void fill_spawn(struct nk_archive *a, const struct nk_archive_user *user)
{
    a->spawn.argv = worker_argv;
    a->spawn.envp = &worker_argv[3]; /* empty */
    a->spawn.cwd = "/";
    a->spawn.creds = *user->creds;
    a->spawn.share = user->share;
    a->spawn.switch_user = geteuid() == 0;
    a->spawn.limits.fsize = a->all->cfg.fsize;
    a->spawn.oom_score_adj = 500;
    a->spawn.done = on_started;
}

static int start(struct nk_archive *a, const struct nk_tar_order *order,
                 const struct nk_archive_user *user)
{
    int rc = uv_timer_init(a->all->cfg.loop, &a->timer);

    if (rc < 0)
        return rc;
    a->timer.data = a;
    a->open_handles++;
    rc = uv_timer_start(&a->timer, on_timer, CHECK_MS, CHECK_MS);
    if (rc == 0)
        rc = open_pipes(a);
    if (rc == 0)
        rc = nk_tar_order_send(a->in.fd, order);
    if (rc < 0)
        return rc;
    /* A packer is told no more; of an unpacker only notes are read. */
    nk_archive_close_pipe(a->packing ? &a->in : &a->out);
    fill_spawn(a, user);
    nk_archive_moved(a);
    a->starting = true;
    nk_spawn_start(a->all->cfg.spawner, &a->spawn);
    return 0;
}

static unsigned count_of(const struct nk_archives *all, const void *share)
{
    unsigned count = 0;

    for (const struct nk_list *n = all->list.next; n != &all->list; n = n->next)
        count += nk_list_entry(n, const struct nk_archive, link)->spawn.share == share;
    return count;
}

int nk_archive_open(struct nk_archives *all, const struct nk_tar_order *order,
                    const struct nk_archive_user *user, const struct nk_archive_events *events,
                    struct nk_archive **out, struct nk_err *err)
{
    struct nk_archive *a;
    int rc;

    if (all->count >= NK_ARCHIVE_MAX || count_of(all, user->share) >= NK_ARCHIVE_SHARE)
        return nk_fail(err, NK_BUSY, "too many archives are on their way already");
    if (access(worker_argv[0], F_OK) < 0)
        return nk_fail(err, NK_NOT_SUPPORTED, "archives need /proc, which is not mounted");
    a = calloc(1, sizeof *a);
    if (!a)
        return nk_fail(err, NK_OVERLOADED, "no memory for an archive");
    a->all = all;
    a->events = *events;
    a->packing = order->pack;
    a->in.fd = a->out.fd = a->note.fd = -1;
    a->spawn.stdio[0] = a->spawn.stdio[1] = a->spawn.stdio[2] = -1;
    a->notes.max = NK_TAR_NOTE_MAX + 65536;
    nk_list_append(&all->list, &a->link);
    all->count++;
    rc = start(a, order, user);
    if (rc < 0) {
        for (int i = 0; i < 3; i++)
            nk_close_fd(&a->spawn.stdio[i]);
        nk_archive_close(&a);
        return nk_fail(err, NK_OVERLOADED, "cannot start an archive worker: %s", strerror(-rc));
    }
    *out = a;
    return 0;
}

void nk_archive_close(struct nk_archive **slot)
{
    struct nk_archive *a = *slot;

    if (!a)
        return;
    *slot = NULL;
    a->closed = true;
    /* Without input an unpacker tidies up and ends; a packer has nothing to tidy up. */
    nk_archive_close_pipe(&a->in);
    nk_archive_close_pipe(&a->out);
    if (a->packing)
        nk_archive_kill(a);
    if (!a->starting && !a->running)
        close_handles(a);
    else
        (void)uv_timer_start(&a->timer, on_timer, NK_ARCHIVE_LEAVE_MS, 1000);
    maybe_free(a);
}

int nk_archives_open(const struct nk_archives_config *cfg, struct nk_archives **out)
{
    struct nk_archives *all = calloc(1, sizeof *all);

    if (!all)
        return -ENOMEM;
    all->cfg = *cfg;
    nk_list_init(&all->list);
    *out = all;
    return 0;
}

void nk_archives_close(struct nk_archives **slot)
{
    struct nk_archives *all = *slot;

    if (!all)
        return;
    *slot = NULL;
    while (!nk_list_empty(&all->list)) {
        struct nk_archive *a = nk_list_entry(all->list.next, struct nk_archive, link);

        nk_list_remove(&a->link);
        if (a->running) {
            nk_archive_kill(a);
            nk_reaper_forget(all->cfg.reaper, &a->watch);
            a->running = false;
        }
        a->all = NULL;
        if (!a->over)
            (void)nk_fail(&a->last.err, NK_SHUTTING_DOWN, "the agent is ending");
        a->over = true; /* whoever opened it has yet to close it */
        close_handles(a);
        maybe_free(a);
    }
    free(all);
}
