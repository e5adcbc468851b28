#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"
#include "process/child.h"
#include "process/probe.h"
#include "process/starters.h"

/* libc's clone by its other name: the thread sanitizer takes the first one for a fork, and its locks
 * for a copy. */
int __clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...);

struct nk_spawner {
    struct nk_spawner_config cfg;
    struct nk_starters starters;
    uv_async_t over;  /* starts in threads are over */
    uv_idle_t soon;   /* starts that ended on the loop are told in its next turn */
    uv_timer_t watch; /* the watchdog: active while a thread has work */
    struct nk_list ended;
    unsigned pending;
    unsigned open_handles;
    bool close_range;
    int oom_score_adj; /* our own */
    bool unprivileged; /* not root */
    uint64_t reset;    /* the signals a child sets to their default */
};

static const char *const step_names[NK_STEP_COUNT] = {
    [NK_STEP_NONE] = "none",
    [NK_STEP_CLONE] = "clone",
    [NK_STEP_SETSID] = "setsid",
    [NK_STEP_TTY] = "tty",
    [NK_STEP_STDIO] = "stdio",
    [NK_STEP_RLIMIT] = "rlimit",
    [NK_STEP_SETGROUPS] = "setgroups",
    [NK_STEP_SETGID] = "setgid",
    [NK_STEP_SETUID] = "setuid",
    [NK_STEP_VERIFY] = "verify",
    [NK_STEP_CHDIR] = "chdir",
    [NK_STEP_CONFINE] = "confine",
    [NK_STEP_FDS] = "fds",
    [NK_STEP_EXEC] = "exec",
};

const char *nk_spawn_step_name(enum nk_spawn_step step)
{
    return step >= 0 && step < NK_STEP_COUNT ? step_names[step] : "none";
}

/* The caller waits until the child has executed or is gone, with every signal blocked: a handler in
 * the child would run on our memory. The child's system calls write our thread's errno. Where the kernel
 * does so, *out_before_exec becomes 0 at the exec. */
static int run_child(int (*fn)(void *arg), void *arg, char *stack, int flags, pid_t *out_pid,
                     pid_t *out_before_exec)
{
    uint64_t all = UINT64_MAX, old = 0;
    void *const no_tls = NULL;
    int saved = errno;
    int rc;

    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof all);
    rc = __clone(fn, stack + NK_STARTER_STACK,
                 CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | flags, arg,
                 out_pid, no_tls, out_before_exec);
    if (rc < 0)
        rc = -errno;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof old);
    errno = saved;
    return rc < 0 ? rc : 0;
}

int nk_spawn_probe(int (*fn)(void *arg), void *arg)
{
    char *stack = nk_starter_stack_new();
    pid_t pid = 0;
    int rc;

    if (!stack)
        return -ENOMEM;
    rc = run_child(fn, arg, stack, 0, &pid, NULL);
    nk_starter_stack_free(stack);
    return rc < 0 ? rc : nk_reaper_take_probe(pid);
}

static const char *find_path(const char *const *envp)
{
    for (; *envp; envp++) {
        if (strncmp(*envp, "PATH=", 5) == 0)
            return *envp + 5;
    }
    return NULL;
}

/* One descriptor may be given twice. */
static void close_stdio(struct nk_spawn *s)
{
    for (int i = 0; i < 3; i++) {
        for (int j = i + 1; j < 3; j++) {
            if (s->stdio[j] == s->stdio[i])
                s->stdio[j] = -1;
        }
        nk_close_fd(&s->stdio[i]);
    }
    if (s->channel > 0)
        nk_close_fd(&s->channel);
    s->channel = 0;
}

static void set_outcome(struct nk_starter *st, struct nk_spawn *s, bool reached)
{
    struct nk_child_failure failure;

    if (read(st->status[0], &failure, sizeof failure) == sizeof failure) {
        s->step = failure.step;
        s->sys = failure.sys;
    } else if (!reached) {
        s->killed = true;
    }
}

static bool raises_oom(const struct nk_spawner *sp, const struct nk_spawn *s)
{
    return s->oom_score_adj >= 0 && s->oom_score_adj > sp->oom_score_adj;
}

static void start_child(struct nk_starter *st, struct nk_spawn *s)
{
    const struct nk_spawner *sp = NK_CONTAINER_OF(st->all, struct nk_spawner, starters);
    struct nk_child child = {
        .spawn = s,
        .filter = sp->cfg.filter,
        .path = find_path(s->envp),
        .status_fd = st->status[1],
        .reset = sp->reset,
        .confine = !st->confined,
        .bounded = st->bounded,
        .close_range = sp->close_range,
        .raise_oom = raises_oom(sp, s),
    };
    int rc;

    atomic_store(&s->before_exec, 1);
    nk_starter_begin(st, s);
    rc = run_child(nk_child_run, &child, st->stack, SIGCHLD, (pid_t *)&s->start.pid,
                   (pid_t *)&s->before_exec);
    nk_starter_end(st);
    if (rc < 0) {
        s->step = NK_STEP_CLONE;
        s->sys = -rc;
    } else {
        set_outcome(st, s, child.reached);
    }
    close_stdio(s);
}

static bool is_shortage(int sys)
{
    return sys == EAGAIN || sys == ENOMEM || sys == EMFILE || sys == ENFILE;
}

/* False: it runs. */
static bool fill_error(const struct nk_spawn *s, struct nk_err *err)
{
    if (s->killed) {
        (void)nk_fail(err, NK_OVERLOADED, "the start of the program was not through in time");
        return true;
    }
    if (s->step == NK_STEP_NONE)
        return false;
    (void)nk_fail(err, is_shortage(s->sys) ? NK_OVERLOADED : NK_EXEC_FAILED,
                  "cannot start %.90s: %s%s%.90s: %s", s->argv[0], nk_spawn_step_name(s->step),
                  s->step == NK_STEP_CHDIR ? " " : "", s->step == NK_STEP_CHDIR ? s->cwd : "",
                  strerror(s->sys));
    err->sys = s->sys;
    err->stage = nk_spawn_step_name(s->step);
    return true;
}

/* Without root, a child on the memory of a daemon that is not dumpable may not write its own. */
static void raise_oom_late(const struct nk_spawn *s, pid_t pid)
{
    nk_auto_fd int fd = -1;
    char text[64];
    int n;

    (void)snprintf(text, sizeof text, "/proc/%d/oom_score_adj", (int)pid);
    fd = open(text, O_WRONLY | O_CLOEXEC);
    n = snprintf(text, sizeof text, "%d", s->oom_score_adj);
    if (fd >= 0)
        (void)!write(fd, text, (size_t)n);
}

static void finish(struct nk_spawner *sp, struct nk_spawn *s)
{
    struct nk_reaper_start start;
    struct nk_err err = {0};
    bool failed = fill_error(s, &err);

    if (--sp->pending == 0)
        (void)uv_timer_stop(&sp->watch);
    nk_reaper_settle(sp->cfg.reaper, &s->start);
    start = s->start;
    if (!failed && !start.reaped && sp->unprivileged && raises_oom(sp, s))
        raise_oom_late(s, start.pid);
    s->done(s, failed ? 0 : start.pid, failed ? &err : NULL);
    nk_reaper_deliver(sp->cfg.reaper, &start);
}

static void finish_all(struct nk_spawner *sp, struct nk_list *list)
{
    while (!nk_list_empty(list)) {
        struct nk_spawn *s = nk_list_entry(list->next, struct nk_spawn, link);

        nk_list_remove(&s->link);
        finish(sp, s);
    }
}

static void on_over(uv_async_t *handle)
{
    struct nk_spawner *sp = handle->data;
    struct nk_list list;

    nk_list_init(&list);
    nk_starters_take(&sp->starters, &list);
    finish_all(sp, &list);
}

/* Those that end while these are told wait for the turn after. */
static void on_soon(uv_idle_t *handle)
{
    struct nk_spawner *sp = handle->data;
    struct nk_list list;

    (void)uv_idle_stop(handle);
    nk_list_init(&list);
    while (!nk_list_empty(&sp->ended)) {
        struct nk_list *first = sp->ended.next;

        nk_list_remove(first);
        nk_list_append(&list, first);
    }
    finish_all(sp, &list);
}

static void tell_soon(struct nk_spawner *sp, struct nk_spawn *s)
{
    nk_list_append(&sp->ended, &s->link);
    (void)uv_idle_start(&sp->soon, on_soon);
}

static void refuse(struct nk_spawner *sp, struct nk_spawn *s)
{
    s->step = NK_STEP_CLONE;
    s->sys = EAGAIN;
    close_stdio(s);
    tell_soon(sp, s);
}

static void on_watch(uv_timer_t *handle)
{
    struct nk_spawner *sp = handle->data;
    struct nk_list list;

    nk_list_init(&list);
    nk_starters_expire(&sp->starters, &list);
    while (!nk_list_empty(&list)) {
        struct nk_spawn *s = nk_list_entry(list.next, struct nk_spawn, link);

        nk_list_remove(&s->link);
        refuse(sp, s);
    }
}

/* A child that has to install the filter itself costs more than the way through a thread: the kernel
 * compiles it anew, and interrupts all cores to do so. */
static bool can_start_here(const struct nk_spawner *sp)
{
    return sp->pending == 0 && (sp->starters.own.confined || !sp->cfg.filter) &&
           nk_reaper_childless(sp->cfg.reaper);
}

void nk_spawn_start(struct nk_spawner *sp, struct nk_spawn *s)
{
    bool here = can_start_here(sp);

    s->step = NK_STEP_NONE;
    s->sys = 0;
    s->killed = false;
    sp->pending++;
    nk_reaper_expect(sp->cfg.reaper, &s->start);
    if (here) {
        nk_starters_guard(&sp->starters);
        start_child(&sp->starters.own, s);
        tell_soon(sp, s);
    } else if (!nk_starters_put(&sp->starters, s)) {
        refuse(sp, s);
    } else if (!uv_is_active((uv_handle_t *)&sp->watch)) {
        (void)uv_timer_start(&sp->watch, on_watch, NK_STARTER_NUDGE_MS, NK_STARTER_NUDGE_MS);
    }
}

unsigned nk_spawner_pending(const struct nk_spawner *sp)
{
    return sp->pending;
}

/* Those with a handler, and those that our parent made us ignore: exec would leave these ignored, and
 * the first could run in the child, on our memory. Each is a system call of every child. */
static uint64_t signals_to_reset(void)
{
    const uint64_t never = UINT64_C(1) << (SIGKILL - 1) | UINT64_C(1) << (SIGSTOP - 1);
    uint64_t reset = UINT64_C(3) << 31; /* libc's own two: it does not tell of them */

    for (int signo = 1; signo <= 64; signo++) {
        struct sigaction now;

        if (sigaction(signo, NULL, &now) < 0 || now.sa_handler != SIG_DFL)
            reset |= UINT64_C(1) << (signo - 1);
    }
    return reset & ~never;
}

static int own_oom_score(void)
{
    nk_auto_fd int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
    char text[16] = "";

    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        return 0;
    return (int)strtol(text, NULL, 10);
}

static void on_closed(uv_handle_t *handle)
{
    struct nk_spawner *sp = handle->data;

    if (--sp->open_handles == 0)
        free(sp);
}

int nk_spawner_open(const struct nk_spawner_config *cfg, struct nk_spawner **out)
{
    struct nk_spawner *sp = calloc(1, sizeof *sp);
    int rc;

    if (!sp)
        return -ENOMEM;
    sp->cfg = *cfg;
    sp->close_range = nk_has(cfg->kernel, NK_MECH_CLOSE_RANGE);
    sp->oom_score_adj = own_oom_score();
    sp->reset = signals_to_reset();
    sp->unprivileged = geteuid() != 0;
    nk_list_init(&sp->ended);
    sp->starters = (struct nk_starters){
        .run = start_child,
        .over_async = &sp->over,
        .filter = cfg->filter,
        .filter_foreign = cfg->filter_foreign,
        .deadline_ms = cfg->deadline_ms ? cfg->deadline_ms : NK_SPAWN_DEADLINE_MS,
    };
    sp->starters.own.confined = cfg->loop_confined;
    rc = nk_starters_init(&sp->starters);
    if (rc < 0)
        goto no_starters;
    rc = uv_async_init(cfg->loop, &sp->over, on_over);
    if (rc < 0)
        goto no_async;
    (void)uv_idle_init(cfg->loop, &sp->soon);
    (void)uv_timer_init(cfg->loop, &sp->watch);
    sp->over.data = sp->soon.data = sp->watch.data = sp;
    sp->open_handles = 3;
    *out = sp;
    return 0;

no_async:
    nk_starters_fini(&sp->starters);
no_starters:
    free(sp);
    return rc;
}

void nk_spawner_close(struct nk_spawner **slot)
{
    struct nk_spawner *sp = *slot;

    if (!sp)
        return;
    *slot = NULL;
    nk_starters_fini(&sp->starters);
    uv_close((uv_handle_t *)&sp->over, on_closed);
    uv_close((uv_handle_t *)&sp->soon, on_closed);
    uv_close((uv_handle_t *)&sp->watch, on_closed);
}
