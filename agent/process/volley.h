/*
 * One signal to many trees, in one look at /proc however many they are: what the end of all needs.
 *
 * Private to process/. Owned by the registry; loop thread but for its job.
 */
#ifndef NK_PROCESS_VOLLEY_H
#define NK_PROCESS_VOLLEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/job.h"

struct nk_registry;
struct nk_process;

struct nk_volley_set {
    uint8_t *mark; /* owned; a byte a mark */
    pid_t *leader; /* owned; where there are no marks */
    size_t count;  /* of trees */
    size_t cap;    /* of `leader` */
    int signo;     /* 0: none */
    bool thaw;     /* before that, whatever is paused goes on: PROGRAM's tree too */
};

struct nk_volley {
    struct nk_volley_set due, now; /* gathered, and the job's */
    struct nk_job job;
    bool gathers, busy;
};

int nk_volley_init(struct nk_registry *r); /* 0 or -ENOMEM */
void nk_volley_fini(struct nk_volley *s);

/* Between these two, jobs for that signal to a whole tree are not started but gathered. What comes
 * while a volley is under way is one after it, with the last signal. */
void nk_volley_begin(struct nk_registry *r, int signo);
bool nk_volley_add(struct nk_process *p, int signo); /* false: it needs a job of its own */
void nk_volley_go(struct nk_registry *r);

void nk_volley_thaw(struct nk_registry *r); /* with the next one, or now */

#endif
