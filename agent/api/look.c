#include "api/look.h"

#include <stdlib.h>
#include <unistd.h>

#include "api/api.h"

static void find_ports(struct nk_job *job)
{
    struct nk_look *look = NK_CONTAINER_OF(job, struct nk_look, job);
    int found;

    look->ports = calloc(NK_PORTS_MAX, sizeof *look->ports);
    if (!look->ports)
        return;
    found = nk_ports_find(nk_has(look->api->kernel, NK_MECH_SOCK_DIAG), look->user->creds.uid,
                          look->mark_first, look->mark_count, look->ports, NK_PORTS_MAX);
    look->count = found > 0 ? (size_t)found : 0;
}

static void on_found(struct nk_job *job, bool canceled)
{
    struct nk_look *look = NK_CONTAINER_OF(job, struct nk_look, job);

    (void)canceled;
    look->busy = false;
    look->done(look);
    /* `done` may have freed it */
}

static void find_later(struct nk_look *look)
{
    look->busy = true;
    look->job = (struct nk_job){.work = find_ports, .done = on_found};
    if (geteuid() == 0)
        look->job.as = &look->user->creds;
    nk_job_submit(look->api->jobs, &look->job);
}

static void on_settled(struct nk_settle *settle)
{
    struct nk_look *look = NK_CONTAINER_OF(settle, struct nk_look, settle);

    if (look->wanted(look))
        find_later(look);
    else
        look->done(look);
}

void nk_look_start(struct nk_look *look, struct nk_api *api, const struct nk_user *user, bool trees)
{
    look->api = api;
    look->user = user;
    look->settle.fn = on_settled;
    nk_registry_marks(api->processes, &look->mark_first, &look->mark_count);
    if (trees)
        nk_registry_settle(api->processes, &look->settle);
    else
        find_later(look);
}

static bool belongs(const struct nk_port *port, const struct nk_process *p)
{
    return p->mark ? port->mark == p->mark : port->session == p->pid;
}

size_t nk_look_ports(const struct nk_look *look, const struct nk_process *p, uint16_t *out)
{
    size_t count = 0;

    if (p->state == NK_PROC_EXITED && !p->tree)
        return 0;
    for (size_t i = 0; i < look->count && count < NK_LOOK_PORTS; i++)
        if (belongs(&look->ports[i], p))
            out[count++] = look->ports[i].port;
    return count;
}

bool nk_look_drop(struct nk_look *look)
{
    nk_registry_unsettle(&look->settle);
    look->dropped = true;
    if (look->busy)
        return false;
    free(look->ports);
    look->ports = NULL;
    return true;
}
