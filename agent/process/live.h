/*
 * What a command has only while something of it is open: descriptors, loop handles, the start.
 *
 * Private to process/. Owned by its record, of which it holds a reference; released once nothing is
 * open any more, in two steps. Loop thread only.
 */
#ifndef NK_PROCESS_LIVE_H
#define NK_PROCESS_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/job.h"
#include "process/cgroups.h"
#include "process/process.h"
#include "process/reaper.h"
#include "process/spawn.h"
#include "process/tree.h"

#define NK_READ_MAX (256u * 1024u) /* bytes a wake-up and process */
#define NK_KILL_MS 5000            /* how long a tree is hunted */

struct nk_terminal; /* process/terminal.h */

struct nk_output {
    uv_poll_t poll;
    struct nk_live *live; /* borrowed: the owner */
    int fd;               /* owned; -1: at its end */
    enum nk_stream stream;
    bool handle;        /* poll is initialised */
    bool wide;          /* its pipe is as large as one read */
    uint64_t must_read; /* bytes in it at the reap, or at a drain, that have not been read */
    bool armed;
};

struct nk_input {
    uv_poll_t poll;
    struct nk_live *live;  /* borrowed: the owner */
    int fd;                /* owned; -1: closed, or there is none */
    struct nk_buf pending; /* not yet taken by the pipe */
    bool close_after;      /* when `pending` is written */
    bool handle;           /* poll is initialised */
    bool ending;           /* of a terminal: `eof` is to be written, or was */
    uint8_t last;          /* of a terminal: the byte written last */
    uint8_t eof;           /* its EOF character */
    uint8_t eof_left;      /* how often that is still to be written */
};

struct nk_tree_job {
    struct nk_job job;
    struct nk_tree tree;
    struct nk_process *process;      /* holds a reference */
    struct nk_live *live;            /* NULL: allocated alone, frees itself */
    const struct nk_cgroups *groups; /* borrowed: outlives the registry; NULL: it has none */
    bool thaw;                       /* its group is frozen, and must act */
    int signo;                       /* KILL: until nothing is left; 0: only thawed */
};

struct nk_live {
    struct nk_process *process; /* holds a reference */
    struct nk_list link;        /* in the registry's list of what is open */
    struct nk_output out[2];
    struct nk_input in;
    struct nk_terminal *terminal; /* owned; NULL: on pipes. Its master is out[0] and, again, in */
    uv_timer_t timeout;
    uv_timer_t quiet;
    struct nk_spawn spawn;
    char **envp; /* owned until started */
    struct nk_reaper_watch watch;
    struct nk_tree_job kill;
    unsigned open_handles;
    bool handles; /* outputs and timers are initialised */
    bool kill_busy;
    bool kill_wanted; /* asked to end while the start was under way */
    bool paused;      /* not reading: a holding watcher is behind */
    bool closing;
    bool gone;         /* nothing of the command lives: no more comes, whatever the kernel says */
    size_t read_size;  /* grows with what comes */
    unsigned quiet_ms; /* how long the clock of the end has run */
    uint64_t quiet_from;
    uint64_t timeout_left_ms; /* while paused: of the command's time */

    int kept_input;          /* owned: of a resident, the reading end of its input; -1: none */
    struct nk_process *sink; /* holds a reference: whose bytes are read; NULL: its own */
    struct nk_drain *drain;  /* borrowed: waits until `must_read` is read; NULL: nobody does */
};

struct nk_live *nk_live_new(struct nk_process *p);    /* NULL: no memory */
int nk_live_open(struct nk_live *l, uv_loop_t *loop); /* handles on the descriptors. 0 or -errno */
void nk_live_settle(struct nk_live *l); /* releases it if nothing is open and the command is over */
void nk_live_abort(struct nk_live *l);  /* releases it at once: the start failed */
void nk_live_leave(struct nk_live *l);  /* the same at the registry's end, whoever still runs */
void nk_live_unhandle(struct nk_live *l); /* one handle or job less; frees after the last */

/* output.c */
int nk_output_open(struct nk_output *o); /* the loop can poll it. 0 or -errno */
void nk_output_arm(struct nk_output *o);
void nk_output_begin(struct nk_live *l); /* the command runs: reads, or begins to in a moment */
void nk_output_read(struct nk_output *o, bool until_dry);
void nk_output_close(struct nk_output *o);
void nk_output_resume(struct nk_live *l); /* a watcher moved on: read again if there is room */
size_t nk_output_room(const struct nk_process *p, uint64_t *out_keep);
void nk_output_mark(struct nk_live *l);           /* what is in the pipes now must be read */
uint64_t nk_output_left(const struct nk_live *l); /* of what must be read */
struct nk_process *nk_output_sink(const struct nk_live *l);
void nk_output_clock(struct nk_live *l, bool run); /* stands still while paused */
void nk_output_reaped(struct nk_live *l); /* reads what is there, starts the clock of the end */
void nk_output_gone(struct nk_live *l);   /* the rest is read and the terminal let go, soon */

/* input.c */
int nk_input_open(struct nk_input *in, uv_loop_t *loop);
void nk_input_push(struct nk_input *in);
void nk_input_close(struct nk_input *in);

/* launch.c */
int nk_launch_prepare(struct nk_live *l, const struct nk_command *cmd, struct nk_err *err);

/* hosted.c */
int nk_hosted_open_input(struct nk_live *l, const struct nk_process *carrier); /* or -errno */
int nk_hosted_keep_input(struct nk_live *l); /* of a resident. 0 or -errno */
void nk_hosted_read(struct nk_live *l);      /* bytes were read: a drain may be over */
void nk_hosted_let_go(struct nk_live *l);    /* of the carrier */

/* watcher.c */
void nk_process_emit(struct nk_process *p, enum nk_proc_event ev, const struct nk_err *err);

/* process.c */
void nk_process_step(struct nk_process *p);
void nk_process_drop_results(struct nk_process *p);
void nk_process_arm_timeout(struct nk_live *l, uint64_t ms);

/* registry.c, trees.c; this one takes a slot */
struct nk_process *nk_registry_adopt(struct nk_registry *r, const struct nk_command *cmd,
                                     struct nk_err *err);
void nk_registry_failed(struct nk_process *p); /* never started: gives the slot back, forgets */
void nk_registry_started(struct nk_process *p);
void nk_registry_ended(struct nk_process *p);   /* gives the slot back, remembers */
void nk_registry_recount(struct nk_process *p); /* the memory of an ended record has changed */
void nk_registry_count_read(struct nk_registry *r, size_t n);
unsigned nk_registry_enter(const struct nk_registry *r, int out[NK_CGROUP_ENTER_MAX]);
uv_loop_t *nk_registry_loop(const struct nk_registry *r);
struct nk_spawner *nk_registry_spawner(const struct nk_registry *r);
struct nk_reaper *nk_registry_reaper(const struct nk_registry *r);
struct nk_list *nk_registry_lives(struct nk_registry *r);
int nk_tree_job_start(struct nk_process *p, int signo);  /* 0 or -errno */
bool nk_registry_is_frozen(const struct nk_registry *r); /* nobody acts on a signal but KILL */

#endif
