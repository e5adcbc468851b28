/* The pass over the writable roots at start: leftovers of a daemon that was killed. */
#include "app_inside.h"

#include "base/log.h"

static void on_over(struct nk_task *t)
{
    struct nk_leftovers *left = NK_CONTAINER_OF(t, struct nk_leftovers, task);

    if (left->removed > 0)
        nk_log_msg(NK_LOG_INFO, "leftovers", "%u files and folders of a killed agent were removed",
                   left->removed);
    nk_leftovers_fini(left);
}

void nk_app_leftovers_start(struct nk_app *a)
{
    a->unfinished.roots = a->roots;
    a->unfinished.task.slice = nk_leftovers_go;
    a->unfinished.task.over = on_over;
    nk_task_start(&a->unfinished.task, a->jobs, a->api.files_as, &a->unfinished);
}

void nk_app_leftovers_stop(struct nk_app *a)
{
    if (a->unfinished.task.running)
        nk_task_stop(&a->unfinished.task);
}
