#include "process/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/filter.h"

#define CAP_MAX_TRIED 63 /* the kernel says EINVAL past its own last one */
/* Refused with EPERM. */
static const char *const denied[] = {
    "mount",
    "umount2",
    "umount",
    "pivot_root",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "move_mount",
    "open_tree",
    "mount_setattr",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "pidfd_getfd",
    "kcmp",
    "kexec_load",
    "kexec_file_load",
    "create_module",
    "init_module",
    "finit_module",
    "delete_module",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "keyctl",
    "add_key",
    "request_key",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "quotactl",
    "quotactl_fd",
    "setns",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "open_by_handle_at",
};

/* All that an archive worker may do once it has its order: read and write what is open, walk folders,
 * make files, folders and links, memory. No sockets, no programs, no processes, no limits. */
static const char *const worker_allowed[] = {
    "read",           "write",        "pread64",    "pwrite64",        "lseek",        "close",
    "openat",         "openat2",      "fstat",      "newfstatat",      "fstatat64",    "statx",
    "getdents64",     "readlinkat",   "mkdirat",    "linkat",          "symlinkat",    "unlinkat",
    "renameat",       "renameat2",    "fchmod",     "ftruncate",       "utimensat",    "fcntl",
    "mmap",           "munmap",       "mremap",     "mprotect",        "madvise",      "brk",
    "getrandom",      "futex",        "getpid",     "gettid",          "tgkill",       "geteuid",
    "clock_gettime",  "gettimeofday", "time",       "sched_yield",     "rt_sigreturn", "exit",
    "rt_sigprocmask", "rt_sigaction", "exit_group", "restart_syscall",
};

/* Missing, or judged by an argument. */
static const struct {
    const char *name;
    enum nk_verdict verdict;
} special[] = {
    {"clone3", NK_VERDICT_MISSING},      {"clone", NK_VERDICT_CLONE},
    {"unshare", NK_VERDICT_UNSHARE},     {"ioctl", NK_VERDICT_IOCTL},
    {"personality", NK_VERDICT_PERSONA},
};

struct calls {
    struct nk_filter_call call[NK_FILTER_CALLS_MAX];
    size_t count;
};

/* libseccomp knows which names this architecture has. One that it lacks (then the number is
 * negative) can be neither made nor denied. */
static void add_call(struct calls *c, const char *name, enum nk_verdict verdict)
{
    int nr = seccomp_syscall_resolve_name(name);

    if (nr >= 0 && c->count < NK_FILTER_CALLS_MAX)
        c->call[c->count++] = (struct nk_filter_call){(unsigned)nr, verdict};
}

static int build(struct calls *c, enum nk_verdict otherwise, struct nk_filter *out,
                 struct nk_err *err)
{
    int rc = nk_filter_build(c->call, c->count, otherwise, out);

    return rc < 0 ? nk_fail_sys(err, -rc, "cannot compile a seccomp filter") : 0;
}

int nk_confine_compile(struct nk_filter *out, struct nk_err *err)
{
    struct calls c = {.count = 0};

    for (size_t i = 0; i < NK_COUNT(denied); i++)
        add_call(&c, denied[i], NK_VERDICT_DENY);
    for (size_t i = 0; i < NK_COUNT(special); i++)
        add_call(&c, special[i].name, special[i].verdict);
    return build(&c, NK_VERDICT_ALLOW, out, err);
}

int nk_confine_compile_worker(struct nk_filter *out, struct nk_err *err)
{
    struct calls c = {.count = 0};

    for (size_t i = 0; i < NK_COUNT(worker_allowed); i++)
        add_call(&c, worker_allowed[i], NK_VERDICT_ALLOW);
    return build(&c, NK_VERDICT_MISSING, out, err);
}

void nk_confine_fini(struct nk_filter *f)
{
    free(f->program);
    f->program = NULL;
    f->count = 0;
}

static NK_RAW int control(long option, long a, long b)
{
    return syscall(SYS_prctl, option, a, b, 0L, 0L) < 0 ? -errno : 0;
}

NK_RAW int nk_confine_apply(const struct nk_filter *f)
{
    struct sock_fprog program;
    int rc = control(PR_SET_NO_NEW_PRIVS, 1, 0);

    if (rc < 0 || !f)
        return rc;
    program.len = f->count;
    program.filter = f->program;
    return control(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&program);
}

static NK_RAW int set_caps(uint32_t low)
{
    struct __user_cap_header_struct head;
    struct __user_cap_data_struct data[2];

    head.version = _LINUX_CAPABILITY_VERSION_3;
    head.pid = 0;
    for (int i = 0; i < 2; i++) {
        data[i].effective = i == 0 ? low : 0;
        data[i].permitted = i == 0 ? low : 0;
        data[i].inheritable = 0;
    }
    return syscall(SYS_capset, (long)&head, (long)data, 0L, 0L, 0L) < 0 ? -errno : 0;
}

NK_RAW int nk_confine_drop_caps(void)
{
    return set_caps(0); /* the ambient set goes with the inheritable one */
}

NK_RAW int nk_confine_drop_bounding(void)
{
    int last = 0;

    for (long cap = 0; cap <= CAP_MAX_TRIED; cap++) {
        int rc = control(PR_CAPBSET_DROP, cap, 0);

        if (rc == -EINVAL)
            break;
        last = rc < 0 ? rc : last;
    }
    return last;
}

NK_RAW bool nk_confine_bounded(void)
{
    for (long cap = 0; cap <= CAP_MAX_TRIED; cap++) {
        long has = syscall(SYS_prctl, (long)PR_CAPBSET_READ, cap, 0L, 0L, 0L);

        if (has < 0)
            return cap > 0;
        if (has > 0)
            return false;
    }
    return true;
}

void nk_confine_daemon(void)
{
    static const uint32_t kept = 1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER |
                                 1u << CAP_KILL | 1u << CAP_SETGID | 1u << CAP_SETUID |
                                 1u << CAP_SETPCAP;
    const struct rlimit none = {0, 0};
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct now[2] = {0};

    (void)prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
    (void)setrlimit(RLIMIT_CORE, &none);
    if (geteuid() != 0 || syscall(SYS_capget, &head, now) < 0)
        return;
    (void)nk_confine_drop_bounding();
    (void)set_caps(kept & now[0].permitted);
}
