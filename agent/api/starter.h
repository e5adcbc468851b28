/*
 * From a request that was read to a command that runs: honours its Idempotency-Key, finds the user
 * where another one is asked for (a job, since it reads files), prepares what is to be done around it
 * (code/run.h), then starts it with the owner's watcher.
 *
 * Embedded by the handler's state, which must stay until nk_starter_drop allows to free it. The loop
 * thread only.
 */
#ifndef NK_API_STARTER_H
#define NK_API_STARTER_H

#include <stdbool.h>

#include "api/exec_request.h"
#include "api/keys.h"
#include "base/err.h"
#include "base/job.h"
#include "code/context.h"
#include "process/process.h"
#include "tenant/quota.h"

struct nk_api;
struct nk_json;
struct nk_req;
struct nk_run;

struct nk_starter {
    enum nk_exec_kind kind;     /* set by the owner */
    bool capture;               /* set by the owner: keep whole outputs */
    bool feeds;                 /* set by the owner: standard input comes from it */
    struct nk_watcher *watcher; /* set by the owner; borrowed */
    /* Set by the owner. What nk_starter_run could not tell yet: `err` where nothing was started,
     * NULL where it was or where the start was dropped meanwhile. */
    void (*done)(struct nk_starter *l, const struct nk_err *err);
    /* Set by the owner: the key's first request started this one; the watcher is not attached. */
    void (*joined)(struct nk_starter *l, struct nk_process *p);

    bool survives; /* the command goes on without its client: detached, or under a key */
    struct nk_job job;
    struct nk_key_use use;
    struct nk_api *api; /* borrowed: outlives every request */
    struct nk_req *req; /* borrowed: until nk_starter_drop */
    struct nk_exec_request ask;
    struct nk_user user;         /* where another one was asked for */
    const char *spec;            /* borrowed: the config's */
    const char *const *base_env; /* borrowed: in the request's arena */
    struct nk_err err;
    struct nk_owner *owner;  /* borrowed: outlives its records */
    struct nk_run *run;      /* owned while it is prepared */
    struct nk_turn turn;     /* of a run in a context */
    bool waits;              /* for that turn */
    bool prepared;           /* the turn comes again: nothing is left to be prepared */
    struct nk_context *made; /* holds a reference: of NK_EXEC_CONTEXT_NEW, once it is there */
    struct nk_process *kept; /* held until the request is over: its results are told at the end */
    bool repeat;             /* waits for what the key's first request started */
    struct nk_quota_ask room;
    bool asking;  /* what is kept is being counted */
    bool looking; /* the job has the struct */
};

/* Reads the request and starts. 0: the watcher, `done` or `joined` will hear; -1 with err: nothing
 * was started and nothing will be heard. */
int nk_starter_run(struct nk_starter *l, struct nk_req *req, struct nk_err *err);
/* The same for an object that came later than the request; it must stay until the watcher or `done`
 * has heard. A key is honoured where it was claimed before: of a repeat (`repeat`) the body is read
 * away and fingerprinted, and nothing is run. */
int nk_starter_claim(struct nk_starter *l, struct nk_req *req, struct nk_err *err);
int nk_starter_run_late(struct nk_starter *l, struct nk_req *req, const struct nk_json *object,
                        struct nk_err *err);

/* The request is over. True: the struct may be freed; false: only once `done` was called. */
bool nk_starter_drop(struct nk_starter *l);

/* The client left: ends the command, unless it has ended (its background children live on) or is to
 * go on without a client. */
void nk_starter_gone(const struct nk_starter *l);

#endif
