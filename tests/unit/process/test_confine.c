#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <asm/ioctls.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/child.h"
#include "process/confine.h"
#include "process/spawn.h"

#if defined(__x86_64__)
#define FOREIGN_CALL (0x40000000L + 39)
#else
#define FOREIGN_CALL 0L
#endif

static struct nk_filter filter;

static int compile(void **state)
{
    (void)state;
    assert_int_equal(nk_confine_compile(&filter, NULL), 0);
    assert_non_null(filter.program);
    return 0;
}

static int release(void **state)
{
    (void)state;
    nk_confine_fini(&filter);
    assert_null(filter.program);
    nk_confine_fini(&filter);
    return 0;
}

struct call {
    long nr, a, b;
};

/* In a throw-away child: its filter and rights are gone with it. 0, or the errno. */
static NK_RAW int child_call(void *arg)
{
    const struct call *c = arg;
    int rc = nk_confine_apply(&filter);

    if (rc < 0)
        return 200;
    rc = (int)nk_child_call(c->nr, c->a, c->b, 0, 0);
    return rc < 0 ? -rc : 0;
}

static int outcome(long nr, long a, long b)
{
    struct call c = {nr, a, b};

    return nk_spawn_probe(child_call, &c);
}

/* Filtered and unfiltered differ, or the call would be refused in any case. */
static NK_RAW int child_call_unfiltered(void *arg)
{
    const struct call *c = arg;
    int rc = (int)nk_child_call(c->nr, c->a, c->b, 0, 0);

    return rc < 0 ? -rc : 0;
}

static int unfiltered(long nr, long a, long b)
{
    struct call c = {nr, a, b};

    return nk_spawn_probe(child_call_unfiltered, &c);
}

static void what_commands_must_not_do_is_refused(void **state)
{
    static const long denied[] = {
        SYS_mount,
        SYS_umount2,
        SYS_pivot_root,
        SYS_move_mount,
        SYS_open_tree,
        SYS_fsopen,
        SYS_ptrace,
        SYS_process_vm_readv,
        SYS_process_vm_writev,
        SYS_kexec_load,
        SYS_init_module,
        SYS_finit_module,
        SYS_delete_module,
        SYS_bpf,
        SYS_perf_event_open,
        SYS_userfaultfd,
        SYS_keyctl,
        SYS_add_key,
        SYS_request_key,
        SYS_reboot,
        SYS_swapon,
        SYS_swapoff,
        SYS_acct,
        SYS_quotactl,
        SYS_setns,
        SYS_io_uring_setup,
        SYS_io_uring_enter,
        SYS_io_uring_register,
        SYS_open_by_handle_at,
    };

    (void)state;
    for (size_t i = 0; i < NK_COUNT(denied); i++)
        assert_int_equal(outcome(denied[i], -1, -1), EPERM);
    /* One that anybody may call, so that the refusal is the filter's. */
    assert_int_not_equal(unfiltered(SYS_keyctl, -1, -1), EPERM);
}

static void clone3_is_missing_so_that_libc_falls_back(void **state)
{
    (void)state;
    assert_int_equal(outcome(SYS_clone3, 0, 0), ENOSYS);
    assert_int_not_equal(unfiltered(SYS_clone3, 0, 0), ENOSYS);
}

static void no_flag_makes_a_namespace(void **state)
{
    static const long flags[] = {CLONE_NEWNS,  CLONE_NEWUTS, CLONE_NEWIPC,   CLONE_NEWUSER,
                                 CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP};

    (void)state;
    for (size_t i = 0; i < NK_COUNT(flags); i++) {
        assert_int_equal(outcome(SYS_unshare, flags[i], 0), EPERM);
        assert_int_equal(outcome(SYS_unshare, flags[i] | CLONE_FILES, 0), EPERM);
        assert_int_equal(outcome(SYS_clone, flags[i] | SIGCHLD, 0), EPERM);
        /* The kernel does not look at the upper half, so neither must a way around. */
        assert_int_equal(outcome(SYS_unshare, flags[i] | 1L << 40, 0), EPERM);
    }
    assert_int_equal(outcome(SYS_unshare, CLONE_NEWTIME, 0), EPERM);
    assert_int_equal(outcome(SYS_unshare, CLONE_FILES, 0), 0);
}

static void nothing_can_be_typed_into_a_terminal(void **state)
{
    (void)state;
    assert_int_equal(outcome(SYS_ioctl, -1, TIOCSTI), EPERM);
    assert_int_equal(outcome(SYS_ioctl, -1, TIOCLINUX), EPERM);
    assert_int_equal(outcome(SYS_ioctl, -1, TIOCSTI | 1L << 32), EPERM);
    assert_int_equal(outcome(SYS_ioctl, -1, TIOCGWINSZ), EBADF);
}

static void only_the_plain_persona_can_be_taken(void **state)
{
    (void)state;
    assert_int_equal(outcome(SYS_personality, 0, 0), 0);
    assert_int_equal(outcome(SYS_personality, 0xffffffffL, 0), 0);
    assert_int_equal(outcome(SYS_personality, 0x0040000, 0), EPERM);
    assert_int_equal(outcome(SYS_personality, 8, 0), EPERM);
    assert_int_equal(outcome(SYS_personality, 0x80040000L, 0), EPERM);
    assert_int_equal(outcome(SYS_personality, 0x40000 | 1L << 32, 0), EPERM);
    assert_int_equal(unfiltered(SYS_personality, 0x0040000, 0), 0);
}

static void everyday_calls_go_through(void **state)
{
    (void)state;
    assert_int_equal(outcome(SYS_umask, 022, 0), 0);
    assert_int_equal(outcome(SYS_setsid, 0, 0), 0);
    assert_int_equal(outcome(SYS_close, -1, 0), EBADF);
    assert_int_equal(outcome(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1), 0);
}

/* x32 numbers mean other calls; where the kernel has none the filter still kills. */
static void another_architectures_call_kills(void **state)
{
    (void)state;
    if (FOREIGN_CALL == 0)
        skip(); /* only x86-64 has a second table behind the same entry */
    assert_int_equal(outcome(FOREIGN_CALL, 0, 0), -1);
}

static void the_caller_is_not_confined(void **state)
{
    (void)state;
    assert_int_equal(outcome(SYS_umask, 022, 0), 0);
    assert_int_equal(prctl(PR_GET_SECCOMP), 0);
    assert_int_equal(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
}

static NK_RAW int child_drop(void *arg)
{
    bool bounded_first = *(const bool *)arg;

    if (bounded_first && nk_confine_drop_bounding() < 0)
        return 100;
    if (bounded_first && !nk_confine_bounded())
        return 101;
    if (nk_confine_drop_caps() < 0)
        return 102;
    /* Without capabilities root may not give the process away. */
    return nk_child_call(SYS_setgroups, 0, 0, 0, 0) == -EPERM ? 0 : 103;
}

static void capabilities_are_dropped_from_every_set(void **state)
{
    bool bounded_first = true;

    (void)state;
    if (geteuid() != 0)
        skip(); /* needs root */
    assert_int_equal(nk_spawn_probe(child_drop, &bounded_first), 0);
    assert_int_equal(unfiltered(SYS_setgroups, 0, 0), 0); /* the caller keeps its own */
}

static void without_any_capability_dropping_them_is_no_error(void **state)
{
    bool bounded_first = false;

    (void)state;
    if (geteuid() == 0)
        skip(); /* needs to be no root */
    assert_int_equal(nk_spawn_probe(child_drop, &bounded_first), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_commands_must_not_do_is_refused),
        cmocka_unit_test(clone3_is_missing_so_that_libc_falls_back),
        cmocka_unit_test(no_flag_makes_a_namespace),
        cmocka_unit_test(nothing_can_be_typed_into_a_terminal),
        cmocka_unit_test(only_the_plain_persona_can_be_taken),
        cmocka_unit_test(everyday_calls_go_through),
        cmocka_unit_test(another_architectures_call_kills),
        cmocka_unit_test(the_caller_is_not_confined),
        cmocka_unit_test(capabilities_are_dropped_from_every_set),
        cmocka_unit_test(without_any_capability_dropping_them_is_no_error),
    };

    return cmocka_run_group_tests(tests, compile, release);
}
