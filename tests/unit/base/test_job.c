#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/job.h"

#define SHARE_A ((const void *)"a")
#define SHARE_B ((const void *)"b")
#define NOBODY 65534

struct fixture {
    uv_loop_t loop;
    struct nk_jobs *jobs;
};

/* A job of the tests: says where it ran, and waits at a gate if it has one. */
struct task {
    struct nk_job job;
    uv_sem_t *arrive, *gate; /* borrowed from the test */
    atomic_uint *order;
    unsigned began; /* the number it drew from `order`, from 1 */
    uid_t uid;
    gid_t gid;
    size_t group_count;
    gid_t groups[NK_CREDS_GROUPS];
    uv_thread_t thread;
    unsigned done_count;
    bool canceled;
};

static struct task *task_of(struct nk_job *job)
{
    return NK_CONTAINER_OF(job, struct task, job);
}

static void work(struct nk_job *job)
{
    struct task *t = task_of(job);
    long n = syscall(SYS_getgroups, NK_CREDS_GROUPS, t->groups);

    t->began = t->order ? atomic_fetch_add(t->order, 1) + 1 : 1;
    t->thread = uv_thread_self();
    t->uid = (uid_t)syscall(SYS_geteuid);
    t->gid = (gid_t)syscall(SYS_getegid);
    t->group_count = n > 0 ? (size_t)n : 0;
    if (t->arrive)
        uv_sem_post(t->arrive);
    if (t->gate)
        uv_sem_wait(t->gate);
}

static void done(struct nk_job *job, bool canceled)
{
    task_of(job)->done_count++;
    task_of(job)->canceled = canceled;
}

static void submit(struct fixture *f, struct task *t, const void *share)
{
    t->job.work = work;
    t->job.done = done;
    t->job.share = share;
    nk_job_submit(f->jobs, &t->job);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (!f || uv_loop_init(&f->loop) < 0 || nk_jobs_new(&f->loop, &f->jobs) < 0)
        return -1;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    nk_jobs_free(f->jobs);
    if (uv_loop_close(&f->loop) < 0)
        return -1;
    free(f);
    return 0;
}

static void run_until_done(struct fixture *f, const struct task *t)
{
    while (t->done_count == 0)
        assert_true(uv_run(&f->loop, UV_RUN_ONCE) || t->done_count > 0);
}

static void run_all(struct fixture *f)
{
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(nk_jobs_active(f->jobs), 0);
}

static void work_is_done_elsewhere_and_handed_back_here(void **state)
{
    struct fixture *f = *state;
    struct task t = {0};
    uv_thread_t here = uv_thread_self();

    submit(f, &t, NULL);
    assert_int_equal(t.done_count, 0);
    assert_int_equal(nk_jobs_active(f->jobs), 1);
    run_all(f);
    assert_int_equal(t.done_count, 1);
    assert_false(t.canceled);
    assert_false(uv_thread_equal(&t.thread, &here));
}

/* Jobs that wait for each other end only when all of them run at once. */
static void the_sandboxs_own_may_use_the_whole_pool_alone(void **state)
{
    struct fixture *f = *state;
    struct task tasks[NK_JOB_THREADS - NK_JOB_URGENT] = {0};
    uv_sem_t arrive, gate;

    assert_int_equal(uv_sem_init(&arrive, 0), 0);
    assert_int_equal(uv_sem_init(&gate, 0), 0);
    for (size_t i = 0; i < NK_COUNT(tasks); i++) {
        tasks[i].arrive = &arrive;
        tasks[i].gate = &gate;
        submit(f, &tasks[i], NULL);
    }
    for (size_t i = 0; i < NK_COUNT(tasks); i++)
        uv_sem_wait(&arrive);
    for (size_t i = 0; i < NK_COUNT(tasks); i++)
        uv_sem_post(&gate);
    run_all(f);
    uv_sem_destroy(&arrive);
    uv_sem_destroy(&gate);
}

/* As on a disk that does not answer: none of them ends before the urgent ones did. */
static void what_is_urgent_waits_for_no_other_job_of_its_share(void **state)
{
    struct fixture *f = *state;
    struct task stuck[NK_JOB_THREADS * 2] = {0}, urgent[NK_JOB_THREADS * 2] = {0};
    const void *const shares[] = {NULL, SHARE_A, SHARE_B};
    uv_sem_t gate;

    assert_int_equal(uv_sem_init(&gate, 0), 0);
    for (size_t i = 0; i < NK_COUNT(stuck); i++) {
        stuck[i].gate = &gate;
        submit(f, &stuck[i], shares[i % 3]);
    }
    for (size_t i = 0; i < NK_COUNT(urgent); i++) {
        urgent[i].job.urgent = true;
        submit(f, &urgent[i], shares[i % 3]);
    }
    for (size_t i = 0; i < NK_COUNT(urgent); i++)
        run_until_done(f, &urgent[i]);
    for (size_t i = 0; i < NK_COUNT(stuck); i++)
        assert_int_equal(stuck[i].done_count, 0);
    for (size_t i = 0; i < NK_COUNT(stuck); i++)
        uv_sem_post(&gate);
    run_all(f);
    uv_sem_destroy(&gate);
}

static void one_identity_leaves_half_of_the_pool(void **state)
{
    struct fixture *f = *state;
    struct task a[NK_JOB_THREADS * 2] = {0}, b[NK_JOB_THREADS / 2] = {0};
    atomic_uint begun = 0;
    uv_sem_t gate;

    assert_int_equal(uv_sem_init(&gate, 0), 0);
    for (size_t i = 0; i < NK_COUNT(a); i++) {
        a[i].gate = &gate;
        a[i].order = &begun;
        submit(f, &a[i], SHARE_A);
    }
    for (size_t i = 0; i < NK_COUNT(b); i++)
        submit(f, &b[i], SHARE_B);
    for (size_t i = 0; i < NK_COUNT(b); i++)
        run_until_done(f, &b[i]);
    assert_true(atomic_load(&begun) <= NK_JOB_THREADS / 2);
    for (size_t i = 0; i < NK_COUNT(a); i++)
        uv_sem_post(&gate);
    run_all(f);
    for (size_t i = 0; i < NK_COUNT(a); i++)
        assert_int_equal(a[i].done_count, 1);
    uv_sem_destroy(&gate);
}

/* Three of the share's four places stay taken, so the rest run one after the other. */
static void jobs_of_a_share_begin_in_order(void **state)
{
    struct fixture *f = *state;
    struct task blockers[4] = {0}, rest[20] = {0};
    atomic_uint order = 0;
    uv_sem_t gate, arrive;

    assert_int_equal(uv_sem_init(&gate, 0), 0);
    assert_int_equal(uv_sem_init(&arrive, 0), 0);
    for (size_t i = 0; i < NK_COUNT(blockers); i++) {
        blockers[i].gate = &gate;
        blockers[i].arrive = &arrive;
        submit(f, &blockers[i], SHARE_A);
    }
    for (size_t i = 0; i < NK_COUNT(rest); i++) {
        rest[i].order = &order;
        submit(f, &rest[i], SHARE_A);
    }
    for (size_t i = 0; i < NK_COUNT(blockers); i++)
        uv_sem_wait(&arrive);
    uv_sem_post(&gate);
    for (size_t i = 0; i < NK_COUNT(rest); i++) {
        run_until_done(f, &rest[i]);
        assert_int_equal(rest[i].began, i + 1);
    }
    for (size_t i = 1; i < NK_COUNT(blockers); i++)
        uv_sem_post(&gate);
    run_all(f);
    uv_sem_destroy(&gate);
    uv_sem_destroy(&arrive);
}

/* Cancels the head, the middle and the end of a waiting queue, whose others still run. */
static void a_waiting_job_can_be_canceled(void **state)
{
    struct fixture *f = *state;
    struct task blockers[4] = {0}, waiting[5] = {0};
    uv_sem_t gate, arrive;

    assert_int_equal(uv_sem_init(&gate, 0), 0);
    assert_int_equal(uv_sem_init(&arrive, 0), 0);
    for (size_t i = 0; i < NK_COUNT(blockers); i++) {
        blockers[i].gate = &gate;
        blockers[i].arrive = &arrive;
        submit(f, &blockers[i], SHARE_A);
    }
    for (size_t i = 0; i < NK_COUNT(waiting); i++)
        submit(f, &waiting[i], SHARE_A);
    for (size_t i = 0; i < NK_COUNT(blockers); i++)
        uv_sem_wait(&arrive);
    for (size_t i = 0; i < NK_COUNT(waiting); i += 2) {
        nk_job_cancel(&waiting[i].job);
        nk_job_cancel(&waiting[i].job);
        assert_int_equal(waiting[i].done_count, 0);
        run_until_done(f, &waiting[i]);
    }
    for (size_t i = 0; i < NK_COUNT(blockers); i++) {
        nk_job_cancel(&blockers[i].job); /* too late: it runs */
        uv_sem_post(&gate);
    }
    run_all(f);
    for (size_t i = 0; i < NK_COUNT(waiting); i++) {
        assert_int_equal(waiting[i].done_count, 1);
        assert_int_equal(waiting[i].canceled, i % 2 == 0);
        assert_int_equal(waiting[i].began, i % 2);
    }
    for (size_t i = 0; i < NK_COUNT(blockers); i++)
        assert_false(blockers[i].canceled);
    uv_sem_destroy(&gate);
    uv_sem_destroy(&arrive);
}

static void submit_again(struct nk_job *job, bool canceled)
{
    (void)canceled;
    if (++task_of(job)->done_count < 5)
        nk_job_submit(job->jobs, job);
}

static void done_owns_the_job_and_may_submit_it_again(void **state)
{
    struct fixture *f = *state;
    struct task t = {.job = {.work = work, .done = submit_again}};

    nk_job_submit(f->jobs, &t.job);
    run_all(f);
    assert_int_equal(t.done_count, 5);
}

static void free_job(struct nk_job *job, bool canceled)
{
    assert_false(canceled);
    free(task_of(job));
}

static void done_may_free_the_job(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 50; i++) {
        struct task *t = calloc(1, sizeof *t);

        assert_non_null(t);
        t->job.work = work;
        t->job.done = free_job;
        t->job.share = i % 2 ? SHARE_A : SHARE_B;
        nk_job_submit(f->jobs, &t->job);
    }
    run_all(f);
}

static struct nk_creds own_creds(void)
{
    struct nk_creds as = {.uid = geteuid(), .gid = getegid()};
    int n = getgroups(NK_CREDS_GROUPS, as.groups);

    as.group_count = n > 0 ? (size_t)n : 0;
    return as;
}

static void anyone_may_become_who_he_is(void **state)
{
    struct fixture *f = *state;
    struct nk_creds as = own_creds();
    struct task t = {.job = {.as = &as}};

    submit(f, &t, NULL);
    run_all(f);
    assert_int_equal(t.job.switch_errno, 0);
    assert_int_equal(t.began, 1);
    assert_int_equal(t.uid, as.uid);
}

static void a_failed_switch_runs_nothing(void **state)
{
    struct fixture *f = *state;
    struct nk_creds as = {.uid = NOBODY, .gid = NOBODY, .group_count = 1000000};
    struct task t = {.job = {.as = &as}}, next = {0};

    submit(f, &t, NULL);
    submit(f, &next, NULL);
    run_all(f);
    assert_int_equal(t.job.switch_errno, geteuid() == 0 ? EINVAL : EPERM);
    assert_int_equal(t.began, 0);
    assert_int_equal(t.done_count, 1);
    assert_false(t.canceled);
    assert_int_equal(next.uid, geteuid());
}

static void work_has_the_rights_of_its_user_and_no_others(void **state)
{
    struct fixture *f = *state;
    struct nk_creds as = {
        .uid = NOBODY, .gid = NOBODY - 1, .groups = {12345, 23456}, .group_count = 2};
    struct nk_creds own = own_creds();
    struct task user[32] = {0}, plain[32] = {0};

    if (geteuid() != 0)
        skip(); /* only root can become another */
    for (size_t i = 0; i < NK_COUNT(user); i++) {
        user[i].job.as = &as;
        submit(f, &user[i], i % 2 ? SHARE_A : NULL);
        submit(f, &plain[i], NULL);
    }
    run_all(f);
    for (size_t i = 0; i < NK_COUNT(user); i++) {
        assert_int_equal(user[i].job.switch_errno, 0);
        assert_int_equal(user[i].uid, as.uid);
        assert_int_equal(user[i].gid, as.gid);
        assert_int_equal(user[i].group_count, 2);
        assert_memory_equal(user[i].groups, as.groups, 2 * sizeof(gid_t));
        assert_int_equal(plain[i].uid, 0);
        assert_int_equal(plain[i].gid, own.gid);
        assert_int_equal(plain[i].group_count, own.group_count);
        assert_memory_equal(plain[i].groups, own.groups, own.group_count * sizeof(gid_t));
    }
    assert_int_equal(geteuid(), 0);
}

/* On this thread only: the raw call spares the others. */
static void set_groups(size_t count, const gid_t *groups)
{
    assert_int_equal(syscall(SYS_setgroups, count, groups), 0);
}

static void groups_come_back_whether_or_not_they_had_to_change(void **state)
{
    const gid_t mine[] = {5, 6};
    const struct nk_creds same = {.uid = NOBODY, .gid = NOBODY, .groups = {6, 5}, .group_count = 2};
    const struct nk_creds other = {
        .uid = NOBODY, .gid = NOBODY, .groups = {5, 7}, .group_count = 2};
    struct nk_creds before = own_creds(), now;

    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can become another */
    set_groups(2, mine);
    assert_int_equal(nk_job_become(&same), 0);
    nk_job_restore();
    assert_int_equal(nk_job_become(&other), 0);
    now = own_creds();
    assert_int_equal(now.groups[1], 7);
    nk_job_restore();
    now = own_creds();
    assert_int_equal(now.group_count, 2);
    assert_memory_equal(now.groups, mine, sizeof mine);
    set_groups(before.group_count, before.groups);
}

/* The kernel, not our own word: a file made there is the user's, and root's is closed to it. */
struct touch {
    struct nk_job job;
    char dir[40];
    uid_t owner;
    int open_errno;
};

static void touch(struct nk_job *job)
{
    struct touch *t = NK_CONTAINER_OF(job, struct touch, job);
    char path[64];
    struct stat st = {.st_uid = 1};
    int fd;

    (void)snprintf(path, sizeof path, "%s/mine", t->dir);
    fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)fstat(fd, &st);
        close(fd);
    }
    t->owner = st.st_uid;
    (void)snprintf(path, sizeof path, "%s/roots", t->dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    t->open_errno = fd < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
}

static void touched(struct nk_job *job, bool canceled)
{
    (void)job;
    assert_false(canceled);
}

static void the_kernel_judges_the_work_as_the_users(void **state)
{
    struct fixture *f = *state;
    struct nk_creds as = {.uid = NOBODY, .gid = NOBODY};
    struct touch t = {.job = {.work = touch, .done = touched, .as = &as}};
    char path[64];
    int fd;

    if (geteuid() != 0)
        skip(); /* only root can become another */
    strncpy(t.dir, "/tmp/nk_test_job_XXXXXX", sizeof t.dir - 1);
    assert_non_null(mkdtemp(t.dir));
    assert_int_equal(chmod(t.dir, 0777), 0);
    (void)snprintf(path, sizeof path, "%s/roots", t.dir);
    fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    nk_job_submit(f->jobs, &t.job);
    run_all(f);
    assert_int_equal(t.owner, NOBODY);
    assert_int_equal(t.open_errno, EACCES);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/mine", t.dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(t.dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_done_elsewhere_and_handed_back_here),
        cmocka_unit_test(the_sandboxs_own_may_use_the_whole_pool_alone),
        cmocka_unit_test(what_is_urgent_waits_for_no_other_job_of_its_share),
        cmocka_unit_test(one_identity_leaves_half_of_the_pool),
        cmocka_unit_test(jobs_of_a_share_begin_in_order),
        cmocka_unit_test(a_waiting_job_can_be_canceled),
        cmocka_unit_test(done_owns_the_job_and_may_submit_it_again),
        cmocka_unit_test(done_may_free_the_job),
        cmocka_unit_test(anyone_may_become_who_he_is),
        cmocka_unit_test(a_failed_switch_runs_nothing),
        cmocka_unit_test(work_has_the_rights_of_its_user_and_no_others),
        cmocka_unit_test(groups_come_back_whether_or_not_they_had_to_change),
        cmocka_unit_test(the_kernel_judges_the_work_as_the_users),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
