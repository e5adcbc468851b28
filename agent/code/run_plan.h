/*
 * What a run needs until it has started: the command with all its words, the code, and how that is
 * made a command.
 *
 * Private to code/. Owned by its run; made and freed on the loop, found and filled on a pool thread
 * with the user's rights.
 */
#ifndef NK_CODE_RUN_PLAN_H
#define NK_CODE_RUN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "code/run.h"
#include "code/tools.h"
#include "process/command.h"

struct nk_run_folder;

struct nk_run_plan {
    struct nk_arena arena;
    struct nk_command cmd; /* its strings lie in the arena */
    struct nk_user user;
    uint8_t *stdin_data; /* owned */
    char *code;          /* owned; NULL: a command */
    const char *const *args;
    const char *search; /* where programs are looked for */

    const struct nk_runtime *runtime; /* borrowed; NULL: not chosen yet, or a command */
    const struct nk_runtime_way *way; /* borrowed: the one that was found */
    struct nk_tool tool, needs;       /* its programs */
    bool any;                         /* the first runtime that is found */
    bool driver;                      /* an interpreter that stays */
    bool checks;                      /* the version of the tool is to be asked */
    bool enough;                      /* it is enough */
    size_t runtime_at, way_at;        /* where looking goes on */
};

int nk_run_plan_new(const struct nk_run_request *ask, struct nk_run_plan **out); /* 0 or -ENOMEM */
void nk_run_plan_free(struct nk_run_plan *plan);

/* The next way whose programs are there; with `checks` its version is to be judged before it is
 * used. -1: there is none, NK_NOT_SUPPORTED names what is missing. */
int nk_run_plan_find(struct nk_run_plan *plan, const struct nk_runtimes *all, struct nk_err *err);
void nk_run_plan_check(struct nk_run_plan *plan, const char *version);

/* Completes the command of an interpreter that stays. 0, or -1 with err. */
int nk_run_plan_drive(struct nk_run_plan *plan, struct nk_err *err);

/* Puts the code into a new folder and completes the command. 0, or -1 with err. */
int nk_run_plan_fill(struct nk_run_plan *plan, struct nk_run_folder *folder,
                     const char *const *temp_dirs, struct nk_err *err);

#endif
