#include "files/task.h"

#include "base/clock.h"

#define SLICE_NS (20u * 1000000u)

static void on_work(struct nk_job *job)
{
    struct nk_task *t = NK_CONTAINER_OF(job, struct nk_task, job);

    t->until_ns = nk_clock_mono_ns() + SLICE_NS;
    t->result = t->undoing ? t->undo(t) : t->slice(t);
}

static void again(struct nk_task *t)
{
    nk_job_submit(t->jobs, &t->job);
}

static void finish(struct nk_task *t, int result)
{
    t->result = result;
    t->running = false;
    t->over(t);
}

static void fail(struct nk_task *t)
{
    if (t->undo) {
        t->undoing = true;
        again(t);
        return;
    }
    finish(t, -1);
}

static void on_done(struct nk_job *job, bool canceled)
{
    struct nk_task *t = NK_CONTAINER_OF(job, struct nk_task, job);

    if (t->undoing) {
        if (t->result == NK_TASK_MORE && !job->switch_errno)
            again(t);
        else
            finish(t, -1);
        return;
    }
    if (job->switch_errno) {
        (void)nk_fail_sys(&t->err, job->switch_errno, "cannot act as the sandbox's user");
        finish(t, -1);
        return;
    }
    if (canceled || (t->stopped && t->result == NK_TASK_MORE))
        t->result = nk_fail(&t->err, NK_SHUTTING_DOWN, "the request was given up");
    if (t->result == NK_TASK_MORE)
        again(t);
    else if (t->result < 0)
        fail(t);
    else
        finish(t, 0);
}

void nk_task_start(struct nk_task *t, struct nk_jobs *jobs, const struct nk_creds *as,
                   const void *share)
{
    t->jobs = jobs;
    t->job.work = on_work;
    t->job.done = on_done;
    t->job.as = as;
    t->job.share = share;
    t->running = true;
    t->stopped = t->undoing = false;
    nk_job_submit(jobs, &t->job);
}

void nk_task_stop(struct nk_task *t)
{
    t->stopped = true;
    if (t->running && !t->undoing)
        nk_job_cancel(&t->job);
}

bool nk_task_due(const struct nk_task *t)
{
    return nk_clock_mono_ns() >= t->until_ns;
}
