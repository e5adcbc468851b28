/*
 * From a command that was read to one that runs: finds the user where another one is asked for
 * (a job, since it reads files), then starts it with the owner's watcher.
 *
 * Embedded by the handler's state, which must stay until nk_starter_drop allows to free it. The loop
 * thread only.
 */
#ifndef NK_API_STARTER_H
#define NK_API_STARTER_H

#include <stdbool.h>

#include "api/exec_request.h"
#include "base/err.h"
#include "base/job.h"
#include "process/process.h"

struct nk_api;
struct nk_req;

struct nk_starter {
    struct nk_job job;
    struct nk_api *api;         /* borrowed: outlives every request */
    struct nk_req *req;         /* borrowed: until nk_starter_drop */
    struct nk_watcher *watcher; /* borrowed: the owner's */
    struct nk_exec_request ask;
    struct nk_user user; /* where another one was asked for */
    const char *spec;    /* borrowed: the config's */
    struct nk_err err;
    bool looking; /* the job has the struct */
    /* Only after a look-up: `err` where nothing was started, NULL where it was or where the start
     * was dropped meanwhile. */
    void (*done)(struct nk_starter *l, const struct nk_err *err);
};

/* Reads the request and starts. `capture`: keep whole outputs. 0: the watcher or `done` will hear;
 * -1 with err: nothing was started and nothing will be heard. */
int nk_starter_run(struct nk_starter *l, struct nk_req *req, struct nk_watcher *w, bool capture,
                   struct nk_err *err);

/* The request is over. True: the struct may be freed; false: only once `done` was called. */
bool nk_starter_drop(struct nk_starter *l);

#endif
