/*
 * PROGRAM of `nookd serve -- PROGRAM`: started once, sent the signals that nookd gets, and its end
 * told with its status; what it leaves behind is ended in order.
 *
 * It has its own process group in our session, and the group, its mark, or (where there are no
 * marks) its descent tell what belongs to it. It is no command: no log, no record, no place among
 * the commands. Owned by app; loop thread, but the looks at /proc, which are jobs.
 */
#ifndef NK_PROCESS_PROGRAM_H
#define NK_PROCESS_PROGRAM_H

#include <stdbool.h>
#include <uv.h>

#include "base/creds.h"
#include "base/job.h"
#include "process/heritage.h"
#include "process/reaper.h"
#include "process/spawn.h"

struct nk_program;

struct nk_program_config { /* all borrowed: outlives the program */
    uv_loop_t *loop;
    struct nk_jobs *jobs;
    struct nk_reaper *reaper;
    struct nk_spawner *spawner;
    const char *const *argv;
    const char *const *envp;
    const char *cwd;
    const struct nk_heritage *heritage;
    struct nk_creds creds; /* without the mark */
    bool switch_user;
    bool pidfd; /* nk_has(kernel, NK_MECH_PIDFD) */
    gid_t mark; /* 0: none */
    bool alone; /* signals reach PROGRAM, not its group */
    bool leave; /* what it leaves behind is left alone */
    /* Once, never from within a call: as a shell counts it; 126 or 127 when it could not start. */
    void (*on_exit)(void *ctx, int status);
    /* Once, after nk_program_end: nothing of it is left. */
    void (*on_over)(void *ctx);
    void *ctx;
};

/* Starts it. 0 or -errno; a program that cannot be executed is told by on_exit. */
int nk_program_open(const struct nk_program_config *cfg, struct nk_program **out);
void nk_program_close(struct nk_program **slot);

/* To it and, but for `alone`, its group. One that comes before it runs is sent when it does. */
void nk_program_signal(struct nk_program *p, int signo);

/* The signal, CONT, TERM to the rest of its tree, a grace, KILL. Again: only the grace, if less. */
void nk_program_end(struct nk_program *p, int signo, unsigned grace_ms);

/* The last look, when nothing shall live any more: KILL to all that descends from us. Blocking. */
void nk_program_sweep(void);

#endif
