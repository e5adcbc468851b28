/*
 * One command: its record, from the start until it is forgotten.
 *
 * Every command is a process. The registry holds the record; whoever watches it holds a reference.
 * While it runs (or while a background child still holds its pipes) `live` has the descriptors and
 * loop handles; an ended record is small. All on the loop. Only this room writes the fields; others
 * read them.
 *
 * The end is announced once, by the rule of the contract: reaped, and either both outputs are at end
 * of file, or all that was in the pipes at the moment of the reap has been read and it was quiet for
 * NK_QUIET_MS (NK_QUIET_MAX_MS at most; the clock runs only while we are reading).
 */
#ifndef NK_PROCESS_PROCESS_H
#define NK_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/id.h"
#include "base/list.h"
#include "process/capture.h"
#include "process/command.h"
#include "process/outlog.h"
#include "process/watcher.h"

#define NK_QUIET_MS 50
#define NK_QUIET_MAX_MS 500
struct nk_live;
struct nk_registry;

enum nk_proc_state { NK_PROC_STARTING, NK_PROC_RUNNING, NK_PROC_EXITED };

enum nk_reason {
    NK_REASON_EXITED,
    NK_REASON_SIGNALED,
    NK_REASON_TIMEOUT,
    NK_REASON_KILLED, /* by an API call */
    NK_REASON_CLIENT_GONE,
    NK_REASON_TTL,
    NK_REASON_IDLE,
    NK_REASON_OOM,
    NK_REASON_SHUTDOWN,
};

struct nk_process {
    struct nk_list link;          /* among the owner's running or ended ones */
    struct nk_list suspect;       /* ended, and it is not known yet whether something of it lives */
    uint64_t serial;              /* order of starts */
    unsigned tree_jobs;           /* that act on the mark: it is not given out again meanwhile */
    uint64_t suspect_since;       /* the number of the scan that will tell */
    struct nk_registry *registry; /* borrowed: outlives every record */
    unsigned refs;
    char id[NK_ID_MAX];
    char *name;  /* owned; NULL: none */
    char **argv; /* owned, one allocation */
    bool shell;
    char *cwd; /* owned */
    char user[64];
    struct nk_owner *owner; /* borrowed: outlives its records */

    enum nk_proc_state state;
    gid_t mark; /* carried by all of its tree; 0: none, or given back */
    pid_t pid;  /* stays after the end, for people only */
    bool reaped;
    bool drained; /* the quiet time of the end is over */
    bool over;    /* it has ended; told to the watchers once `after` is done */
    int wait_status;
    enum nk_reason reason; /* why it was ended, if we did; else from the status */
    bool ended_by_us;
    bool timed_out;
    bool killed;
    int asked_signal; /* the last one that a client sent */
    bool tree;        /* ended, but something of it still lives */
    bool tty;
    unsigned cols, rows;
    bool listed; /* false: forgotten (DELETE), kept only by its watchers */

    int64_t started_wall_ms, ended_wall_ms;
    uint64_t started_ns, ended_ns; /* monotonic */
    uint64_t timeout_ms;
    uint64_t input_end;  /* bytes of stdin ever taken */
    uint64_t sizes[3];   /* bytes written by [NK_STDOUT], [NK_STDERR] up to the end */
    uint64_t end_offset; /* of the log, where the ended streams stop */
    struct nk_outlog log;
    size_t counted;              /* of the owner's output_bytes */
    unsigned holds;              /* nk_registry_hold: the results stay past the end */
    struct nk_capture *captures; /* owned: [0] stdout, [1] stderr; NULL without `capture` */
    struct nk_after *after;      /* owned; NULL: none */

    struct nk_list watchers;
    struct nk_list *emit_next; /* borrowed: where telling the watchers goes on */
    struct nk_live *live;      /* owned; NULL once nothing of it is open */

    bool resident;
    bool hosted;                /* runs in another process */
    struct nk_host *host;       /* borrowed: outlives the run; NULL: it has ended, or not hosted */
    struct nk_process *carrier; /* borrowed: whose outputs fill this log; NULL: its own, or none */
};

/* Starts a command and attaches `w`. 0: *out is the record (NK_PROC_STARTING), and STARTED or
 * FAILED comes later. -1 with err: nothing was started (NK_BUSY, NK_EXISTS, NK_OVERLOADED, …). */
int nk_process_start(struct nk_registry *r, const struct nk_command *cmd, struct nk_watcher *w,
                     struct nk_process **out, struct nk_err *err);

void nk_process_ref(struct nk_process *p);
void nk_process_unref(struct nk_process *p);

/* What is done after its end is done: EXITED comes, at once. */
void nk_process_announce(struct nk_process *p);

/* Ends the whole tree with KILL, for `why`; nothing happens to one that has ended (but its tree). */
void nk_process_end(struct nk_process *p, enum nk_reason why);
/* A signal of the client's choice, to the tree or the leader; a stopped target of TERM and HUP gets
 * CONT too. KILL to the tree is nk_process_end(KILLED). */
void nk_process_signal(struct nk_process *p, int signo, bool tree);

/* A command on a terminal. A size is 1 to 65535 columns and rows; watchers hear of it from the loop.
 * NK_CONFLICT: it has no terminal, or not any more. */
int nk_process_resize(struct nk_process *p, unsigned cols, unsigned rows, struct nk_err *err);
/* To the foreground group of its terminal; without one, to the group that the command leads; where the
 * kernel does not tell who is in front, to the tree. TERM and HUP with a CONT. 0, or -ESRCH where it
 * does not run. */
int nk_process_signal_foreground(struct nk_process *p, int signo);

int nk_process_exit_code(const struct nk_process *p); /* 128+N by signal; 137 on timeout */
const char *nk_process_signal_name(const struct nk_process *p); /* "TERM" or NULL */
const char *nk_reason_name(enum nk_reason r);
uint64_t nk_process_duration_ms(const struct nk_process *p);
/* Where a stream on this process stops: the log's end while it runs, end_offset after. */
uint64_t nk_process_stream_end(const struct nk_process *p);

#endif
