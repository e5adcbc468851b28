/*
 * What /proc knows of commands: whether trees of ended ones still live, which ports they listen on.
 *
 * Embedded by the state of a handler, which must stay until nk_look_drop allows to free it. First the
 * registry settles its trees, then a job (as the user) looks for ports, then `done` is called, once,
 * on the loop and never from within nk_look_start.
 */
#ifndef NK_API_LOOK_H
#define NK_API_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/job.h"
#include "process/ports.h"
#include "process/registry.h"

struct nk_api;
struct nk_user;

#define NK_LOOK_PORTS 64 /* of one process */

struct nk_look {
    void (*done)(struct nk_look *look);
    /* Once the trees are known: whether ports are of interest (something may listen). */
    bool (*wanted)(const struct nk_look *look);
    struct nk_api *api;         /* borrowed: outlives every request */
    const struct nk_user *user; /* borrowed: likewise; whose processes they are */
    struct nk_settle settle;
    struct nk_job job;
    struct nk_port *ports; /* owned */
    size_t count;
    gid_t mark_first;
    unsigned mark_count;
    bool busy;    /* the job has the struct */
    bool dropped; /* only to be freed by `done` */
};

/* `trees`: of what has ended is asked; what runs needs no look at trees. */
void nk_look_start(struct nk_look *look, struct nk_api *api, const struct nk_user *user,
                   bool trees);
/* The ports of one process, at most NK_LOOK_PORTS. How many. */
size_t nk_look_ports(const struct nk_look *look, const struct nk_process *p, uint16_t *out);
/* The request is over. True: the struct may be freed now; false: `done` will be called for that. */
bool nk_look_drop(struct nk_look *look);

#endif
