#include "base/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHARE_MAX (NK_JOB_THREADS / 2)
#define PLAIN_MAX (NK_JOB_THREADS - NK_JOB_URGENT)
#define OWN_GROUPS 64 /* with more groups of its own the daemon may not switch */

/*
 * At most NK_JOB_THREADS jobs are with libuv at a time; the others wait here, one queue a share, and
 * one more for what is urgent of it. The first job of each queue stands in `heads`, and carries the
 * rest of its queue in `rest`. A queue that was served goes to the end, so shares take turns.
 */
struct nk_jobs {
    uv_loop_t *loop;        /* borrowed: outlives the jobs */
    struct nk_list heads;   /* of nk_job.link */
    struct nk_list running; /* of nk_job.link: handed to libuv */
    unsigned running_count;
    unsigned plain_count; /* of these: not urgent */
    unsigned active;
};

/* Who the thread was before nk_job_become. */
struct identity {
    uid_t uid;
    gid_t gid;
    gid_t groups[OWN_GROUPS];
    size_t group_count;
    bool regroup; /* the groups were changed */
};

static _Thread_local struct identity own;

int nk_jobs_new(uv_loop_t *loop, struct nk_jobs **out)
{
    struct nk_jobs *jobs = calloc(1, sizeof *jobs);
    char threads[16];

    if (!jobs)
        return -ENOMEM;
    (void)snprintf(threads, sizeof threads, "%d", NK_JOB_THREADS);
    if (setenv("UV_THREADPOOL_SIZE", threads, 1) < 0) {
        free(jobs);
        return -ENOMEM;
    }
    jobs->loop = loop;
    nk_list_init(&jobs->heads);
    nk_list_init(&jobs->running);
    *out = jobs;
    return 0;
}

void nk_jobs_free(struct nk_jobs *jobs)
{
    free(jobs);
}

static struct nk_job *job_of(struct nk_list *link)
{
    return nk_list_entry(link, struct nk_job, link);
}

static bool are_alike(const struct nk_job *a, const struct nk_job *b)
{
    return a->share == b->share && a->urgent == b->urgent;
}

static unsigned running_like(const struct nk_jobs *jobs, const struct nk_job *job)
{
    unsigned n = 0;

    for (struct nk_list *at = jobs->running.next; at != &jobs->running; at = at->next)
        n += are_alike(job_of(at), job);
    return n;
}

static struct nk_job *find_head(struct nk_jobs *jobs, const struct nk_job *job)
{
    for (struct nk_list *at = jobs->heads.next; at != &jobs->heads; at = at->next) {
        if (are_alike(job_of(at), job))
            return job_of(at);
    }
    return NULL;
}

static void enqueue(struct nk_jobs *jobs, struct nk_job *job)
{
    struct nk_job *head = find_head(jobs, job);

    nk_list_init(&job->rest);
    nk_list_append(head ? &head->rest : &jobs->heads, &job->link);
}

static void move_all(struct nk_list *from, struct nk_list *to)
{
    if (nk_list_empty(from)) {
        nk_list_init(to);
        return;
    }
    *to = *from;
    to->next->prev = to;
    to->prev->next = to;
}

/* Out of its queue; if it was the head, the next one takes its place, behind the other queues. */
static void dequeue(struct nk_jobs *jobs, struct nk_job *job)
{
    struct nk_job *next;

    nk_list_remove(&job->link);
    if (nk_list_empty(&job->rest))
        return;
    next = job_of(job->rest.next);
    nk_list_remove(&next->link);
    nk_list_append(&jobs->heads, &next->link);
    move_all(&job->rest, &next->rest);
}

static void on_work(uv_work_t *req)
{
    struct nk_job *job = req->data;

    if (job->skip)
        return;
    if (!job->as) {
        job->work(job);
        return;
    }
    job->switch_errno = -nk_job_become(job->as);
    if (job->switch_errno != 0)
        return;
    job->work(job);
    nk_job_restore();
}

static void dispatch(struct nk_jobs *jobs);

static void on_worked(uv_work_t *req, int status)
{
    struct nk_job *job = req->data;
    struct nk_jobs *jobs = job->jobs;

    if (nk_list_linked(&job->link)) {
        jobs->running_count--;
        jobs->plain_count -= !job->urgent;
    }
    nk_list_remove(&job->link);
    jobs->active--;
    dispatch(jobs);
    job->done(job, status == UV_ECANCELED || job->skip); /* may free both */
}

static void hand_over(struct nk_jobs *jobs, struct nk_job *job)
{
    job->req.data = job;
    (void)uv_queue_work(jobs->loop, &job->req, on_work, on_worked); /* fails only without on_work */
}

static bool is_alone(const struct nk_jobs *jobs, const struct nk_job *head)
{
    for (struct nk_list *at = jobs->heads.next; at != &jobs->heads; at = at->next) {
        if (job_of(at)->share != head->share)
            return false;
    }
    return true;
}

/* A share has at most half of the pool, so that another one never waits for all of its jobs. Only
 * the sandbox's own, which have no identity to protect from, may take more while they are alone. */
static bool may_start(const struct nk_jobs *jobs, const struct nk_job *head)
{
    unsigned most = head->urgent ? NK_JOB_URGENT : SHARE_MAX;

    if (!head->urgent && jobs->plain_count >= PLAIN_MAX)
        return false;
    return running_like(jobs, head) < most || (!head->share && is_alone(jobs, head));
}

static struct nk_job *find_next(struct nk_jobs *jobs)
{
    for (struct nk_list *at = jobs->heads.next; at != &jobs->heads; at = at->next) {
        if (may_start(jobs, job_of(at)))
            return job_of(at);
    }
    return NULL;
}

static void dispatch(struct nk_jobs *jobs)
{
    while (jobs->running_count < NK_JOB_THREADS) {
        struct nk_job *job = find_next(jobs);

        if (!job)
            return;
        dequeue(jobs, job);
        job->queued = false;
        nk_list_append(&jobs->running, &job->link);
        jobs->running_count++;
        jobs->plain_count += !job->urgent;
        hand_over(jobs, job);
    }
}

void nk_job_submit(struct nk_jobs *jobs, struct nk_job *job)
{
    job->jobs = jobs;
    job->skip = false;
    job->queued = true;
    job->switch_errno = 0;
    jobs->active++;
    enqueue(jobs, job);
    dispatch(jobs);
}

/* A job that waits here has no way back of its own: it takes libuv's, canceled before it begins. */
void nk_job_cancel(struct nk_job *job)
{
    if (job->queued) {
        job->queued = false;
        job->skip = true;
        dequeue(job->jobs, job);
        hand_over(job->jobs, job);
    }
    (void)uv_cancel((uv_req_t *)&job->req);
}

unsigned nk_jobs_active(const struct nk_jobs *jobs)
{
    return jobs->active;
}

static bool has_group(const gid_t *groups, size_t count, gid_t gid)
{
    for (size_t i = 0; i < count; i++) {
        if (groups[i] == gid)
            return true;
    }
    return false;
}

/* Asked first, because without privilege setgroups fails even when it would change nothing. */
static bool same_groups(const struct nk_creds *as)
{
    if (as->group_count != own.group_count)
        return false;
    for (size_t i = 0; i < as->group_count; i++) {
        if (!has_group(own.groups, own.group_count, as->groups[i]) ||
            !has_group(as->groups, as->group_count, own.groups[i]))
            return false;
    }
    return true;
}

static int learn_own(void)
{
    long n = syscall(SYS_getgroups, OWN_GROUPS, own.groups);

    if (n < 0)
        return -errno;
    own.group_count = (size_t)n;
    own.uid = (uid_t)syscall(SYS_geteuid);
    own.gid = (gid_t)syscall(SYS_getegid);
    return 0;
}

int nk_job_become(const struct nk_creds *as)
{
    int rc = learn_own();

    if (rc < 0)
        return rc;
    if (own.uid != 0 && as->uid != own.uid)
        return -EPERM; /* only root's capabilities leave together with its uid */
    own.regroup = !same_groups(as);
    if (own.regroup && syscall(SYS_setgroups, as->group_count, as->groups) < 0)
        return -errno;
    if (syscall(SYS_setresgid, -1, as->gid, -1) == 0 &&
        syscall(SYS_setresuid, -1, as->uid, -1) == 0)
        return 0;
    rc = -errno;
    nk_job_restore();
    return rc;
}

void nk_job_restore(void)
{
    /* The uid first: it brings back the right to change the rest. */
    if (syscall(SYS_setresuid, -1, own.uid, -1) < 0 || syscall(SYS_setresgid, -1, own.gid, -1) < 0)
        abort();
    if (own.regroup && syscall(SYS_setgroups, own.group_count, own.groups) < 0)
        abort();
}
