#include "code/run_sweep.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_older(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static bool is_left_over(const struct nk_run_sweep *s, const char *name)
{
    int top = dirfd(s->dir);
    struct stat st;

    return nk_run_folder_is_name(name) && fstatat(top, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(st.st_mode) && st.st_uid == geteuid() && is_older(&st.st_ctim, &s->since) &&
           !nk_run_folder_is_held(top, name);
}

static void next_top(struct nk_run_sweep *s)
{
    if (s->dir)
        (void)closedir(s->dir);
    s->dir = NULL;
    s->tops++;
}

/* The next folder to be removed. Without memory for it, it stays for the next start. */
static bool find(struct nk_run_sweep *s)
{
    const struct dirent *e;

    if (!s->dir)
        s->dir = opendir(*s->tops);
    e = s->dir ? readdir(s->dir) : NULL;
    if (!e)
        next_top(s);
    else if (is_left_over(s, e->d_name))
        return nk_run_folder_adopt(&s->folder, *s->tops, e->d_name) == 0;
    return false;
}

static int slice(struct nk_task *t)
{
    struct nk_run_sweep *s = NK_CONTAINER_OF(t, struct nk_run_sweep, task);

    while (*s->tops) {
        if (nk_task_due(t))
            return NK_TASK_MORE;
        if (!nk_run_folder_is_there(&s->folder) && !find(s))
            continue;
        if (nk_run_folder_clear(&s->folder, t->until_ns) > 0)
            return NK_TASK_MORE;
        nk_run_folder_fini(&s->folder); /* also where it could not be removed */
    }
    return 0;
}

static void on_over(struct nk_task *t)
{
    struct nk_run_sweep *s = NK_CONTAINER_OF(t, struct nk_run_sweep, task);

    nk_run_folder_fini(&s->folder);
    if (s->dir)
        (void)closedir(s->dir);
    s->dir = NULL;
    if (s->over)
        s->over(s);
}

void nk_run_sweep_start(struct nk_run_sweep *s, struct nk_jobs *jobs, const char *const *tops,
                        const struct nk_creds *as)
{
    *s = (struct nk_run_sweep){.tops = tops, .folder = {.dir = -1}};
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &s->since);
    if (as)
        s->creds = *as;
    s->task.slice = slice;
    s->task.over = on_over;
    nk_task_start(&s->task, jobs, as ? &s->creds : NULL, NULL);
}

void nk_run_sweep_stop(struct nk_run_sweep *s)
{
    if (s->task.running)
        nk_task_stop(&s->task);
}
