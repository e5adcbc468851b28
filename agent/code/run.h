/*
 * What is done around a command: its code is put where it can run, what it changed is found out.
 *
 * For code: the program is found, the code goes to a private folder of the user, which is removed
 * after the end. For all: a look at the writable roots before and after. Everything that blocks is a
 * job with the user's rights. Made for one command, prepared, then given to nk_process_start with the
 * command it makes; from then on the record owns it, and the end is announced when all is done.
 *
 * Loop thread only.
 */
#ifndef NK_CODE_RUN_H
#define NK_CODE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "code/images.h"
#include "code/runtimes.h"
#include "files/snapshot.h"
#include "process/process.h"

struct nk_jobs;
struct nk_outcome;
struct nk_roots;
struct nk_run;
struct nk_versions;

/* Where and for whom; all borrowed: outlives every run. */
struct nk_run_config {
    struct nk_jobs *jobs;
    const struct nk_runtimes *runtimes;
    struct nk_versions *versions;
    const struct nk_roots *roots; /* whose changes are told */
    const char *output_dir;       /* where images are looked for, absolute */
    const char *const *temp_dirs; /* NULL-ended: the first that takes a folder has the code */
    uint64_t max_outputs;         /* bytes of all images */
    const void *share;            /* of jobs */
    bool relative;                /* paths are told from their root on */
    bool switch_user;             /* jobs take the rights of the command's user */
};

struct nk_run_request {               /* borrowed for the call */
    const struct nk_command *cmd;     /* without argv where there is code; `user` is set */
    const char *code;                 /* NULL: a command */
    const struct nk_runtime *runtime; /* NULL: the first that is found */
    const char *const *args;          /* NULL-ended, or NULL */
    bool driver;                      /* no code: the interpreter of a context, which needs none */
    const char *context; /* the language of the context that runs the code; NULL: none */
};

int nk_run_new(const struct nk_run_config *cfg, const struct nk_run_request *ask,
               struct nk_run **out, struct nk_err *err);
void nk_run_free(struct nk_run *r); /* not started, or NULL; what it made is removed later */

/* `ready` is called later, once; with err nothing is left to be run. */
typedef void (*nk_run_ready_fn)(void *ctx, const struct nk_err *err);
void nk_run_prepare(struct nk_run *r, nk_run_ready_fn ready, void *ctx);
void nk_run_stop(struct nk_run *r); /* gives up preparing: `ready` comes with an error */

/* Once it is ready: what to start. Borrowed. */
const struct nk_command *nk_run_command(const struct nk_run *r);
void nk_run_started(struct nk_run *r); /* the record owns it now: the command is forgotten */

/* Of a record; NULL: nothing is done around it. */
const struct nk_run *nk_run_of(const struct nk_process *p);
const char *nk_run_language(const struct nk_run *r);       /* NULL: not code */
const char *nk_run_code(const struct nk_run *r);           /* until it has started */
struct nk_outcome *nk_run_outcome(const struct nk_run *r); /* NULL: not in a context */
/* After the end; `nk_run_path` is how a change is told. */
size_t nk_run_changes(const struct nk_run *r, const struct nk_change **out);
size_t nk_run_images(const struct nk_run *r, const struct nk_image **out);
const char *nk_run_path(const struct nk_run *r, const struct nk_change *c);

#endif
