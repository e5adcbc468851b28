/*
 * Starting a child: prepared here, started by one of two permanent threads.
 *
 * The threads carry no_new_privs and the compiled filter, which children inherit. A vfork parent
 * waits until its child execs, and a user's kill(-1, SIGSTOP) can make that for ever: so the loop
 * does not wait for a start, wakes a child that takes long, and kills one that is not through after
 * NK_SPAWN_DEADLINE_MS. While no process of any user is alive (nk_reaper_childless), the loop starts
 * the child itself where that is faster: where its thread carries the filter too, or there is none.
 * Nobody can then stop or slow it.
 *
 * Owned by app; called on the loop.
 */
#ifndef NK_PROCESS_SPAWN_H
#define NK_PROCESS_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/creds.h"
#include "base/err.h"
#include "base/list.h"
#include "process/reaper.h"

#define NK_SPAWN_DEADLINE_MS 2000
#define NK_SPAWN_CHANNEL 3 /* the one descriptor that a child can have beside 0, 1, 2 */

struct nk_spawner;
struct nk_kernel;
struct nk_heritage;
struct nk_filter; /* process/confine.h: the compiled seccomp program */

enum nk_spawn_step { /* where a start failed; the wire's `stage` */
                     NK_STEP_NONE,
                     NK_STEP_CLONE,
                     NK_STEP_SETSID,
                     NK_STEP_TTY,
                     NK_STEP_STDIO,
                     NK_STEP_RLIMIT,
                     NK_STEP_SETGROUPS,
                     NK_STEP_SETGID,
                     NK_STEP_SETUID,
                     NK_STEP_VERIFY,
                     NK_STEP_CHDIR,
                     NK_STEP_CONFINE,
                     NK_STEP_FDS,
                     NK_STEP_EXEC,
                     NK_STEP_COUNT,
};
const char *nk_spawn_step_name(enum nk_spawn_step step);

struct nk_limits {
    uint64_t nproc; /* 0: as inherited, in each */
    uint64_t nofile_soft;
    uint64_t fsize;
    uint64_t memory;
    bool no_queues; /* POSIX message queues: none may be made, where that can be said */
};

/* Everything a start needs. Filled on the loop; from nk_spawn_start until `done` it belongs to the
 * spawner, and so does all it points to. */
struct nk_spawn {
    const char *const
        *argv; /* argv[0] without a slash is looked up in PATH of `envp`, in the child */
    const char *const *envp;
    const char *cwd;       /* the child changes to it, as the user */
    struct nk_creds creds; /* groups include the command's mark */
    bool switch_user;      /* false: keep our own ids (not root) */
    struct nk_limits limits;
    int stdio[3];      /* owned: become 0, 1, 2 in the child; closed here after the start */
    int channel;       /* owned likewise: becomes NK_SPAWN_CHANNEL; 0: there is none */
    bool tty;          /* stdio[0] is a terminal: make it the controlling one */
    int oom_score_adj; /* raised to it; never lowered */
    const void *share; /* borrowed: an identity, as in base/job.h; NULL: the sandbox's own */
    int enter[3];      /* borrowed: files of control groups that the child puts itself into */
    unsigned enter_count;
    /* PROGRAM: its signals, descriptors and terminal are those of nookd's own start, its process
     * group is its own and its session ours. NULL: a command. */
    const struct nk_heritage *heritage;
    /* Called on the loop, once. pid > 0: running. Else err: NK_EXEC_FAILED with sys and stage, or
     * NK_OVERLOADED (no process, memory or descriptor left, or not through in time). */
    void (*done)(struct nk_spawn *s, pid_t pid, const struct nk_err *err);
    /* the spawner's own */
    struct nk_list link;
    struct nk_reaper_start start; /* its pid is there before the child runs */
    _Atomic pid_t before_exec;    /* 0: it has executed (CLONE_CHILD_CLEARTID), or is gone */
    uint64_t deadline_ms;
    int step; /* enum nk_spawn_step, where it failed */
    int sys;
    bool killed; /* by the watchdog, or by somebody before its exec */
};

struct nk_spawner_config {
    uv_loop_t *loop;
    const struct nk_kernel *kernel; /* borrowed: outlives the spawner */
    struct nk_reaper *reaper;       /* borrowed: outlives the spawner */
    const struct nk_filter *filter; /* borrowed: outlives; NULL: no seccomp */
    bool filter_foreign;            /* it may deny what we need: only children install it */
    bool loop_confined;             /* the calling thread carries no_new_privs and the filter */
    unsigned deadline_ms;           /* 0: NK_SPAWN_DEADLINE_MS; shorter in tests */
};

/* Handlers of signals are set before: children reset only those that it finds. */
int nk_spawner_open(const struct nk_spawner_config *cfg, struct nk_spawner **out);
void nk_spawner_close(struct nk_spawner **slot); /* no start may be under way */
void nk_spawn_start(struct nk_spawner *sp, struct nk_spawn *s);
unsigned nk_spawner_pending(const struct nk_spawner *sp);

/* The self-test: `fn` (raw, see child.h) runs in a throw-away child on our memory while the caller
 * waits. Its result (0 to 255), -1 when a signal ended it, or another -errno. */
int nk_spawn_probe(int (*fn)(void *arg), void *arg);

#endif
