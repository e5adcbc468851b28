/* What a daemon that was killed has left: in the writable roots a pass at start, in the workspace of an
 * identity one when it is first named. */
#include "app_inside.h"

#include <stdlib.h>

#include "base/log.h"

/* Of one identity: first its files, then the private folders of code. */
struct pass {
    struct nk_list link;
    struct nk_tenant *tenant; /* borrowed: outlives every task */
    struct nk_leftovers files;
    struct nk_run_sweep runs;
};

static void finish(struct nk_leftovers *left)
{
    if (left->removed > 0)
        nk_log_msg(NK_LOG_INFO, "leftovers", "%u files and folders of a killed agent were removed",
                   left->removed);
    nk_leftovers_fini(left);
}

static void on_over(struct nk_task *t)
{
    finish(NK_CONTAINER_OF(t, struct nk_leftovers, task));
}

void nk_app_leftovers_start(struct nk_app *a)
{
    a->unfinished.roots = a->roots;
    a->unfinished.task.slice = nk_leftovers_go;
    a->unfinished.task.over = on_over;
    nk_task_start(&a->unfinished.task, a->jobs, a->api.files_as, &a->unfinished);
}

static void end(struct pass *p)
{
    nk_quota_note(&p->tenant->quota); /* a count that ran meanwhile saw what is gone now */
    nk_list_remove(&p->link);
    free(p);
}

static void on_runs_over(struct nk_run_sweep *s)
{
    end(NK_CONTAINER_OF(s, struct pass, runs));
}

static void on_files_over(struct nk_task *t)
{
    struct pass *p = NK_CONTAINER_OF(t, struct pass, files.task);

    finish(&p->files);
    if (t->stopped) {
        end(p);
        return;
    }
    nk_run_sweep_start(&p->runs, t->jobs, p->tenant->temp_dirs, &p->tenant->user.creds);
    p->runs.over = on_runs_over;
}

/* Without memory for it, it stays until the next start. */
void nk_app_leftovers_of(struct nk_tenant *tenant, void *app)
{
    struct nk_app *a = app;
    struct pass *p = calloc(1, sizeof *p);

    if (!p)
        return;
    p->tenant = tenant;
    p->files.roots = tenant->roots;
    p->files.task.slice = nk_leftovers_go;
    p->files.task.over = on_files_over;
    nk_list_append(&a->passes, &p->link);
    nk_task_start(&p->files.task, a->jobs, &tenant->user.creds, &tenant->owner);
}

void nk_app_leftovers_stop(struct nk_app *a)
{
    if (a->unfinished.task.running)
        nk_task_stop(&a->unfinished.task);
    for (struct nk_list *n = a->passes.next; n != &a->passes; n = n->next) {
        struct pass *p = nk_list_entry(n, struct pass, link);

        if (p->files.task.running)
            nk_task_stop(&p->files.task);
        nk_run_sweep_stop(&p->runs);
    }
}
