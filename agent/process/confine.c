#include "process/confine.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"

#define CAP_MAX_TRIED 63 /* the kernel says EINVAL past its own last one */
#define PERSONALITY_QUERY 0xffffffffu
#define NAMESPACES                                                                                 \
    (CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |     \
     CLONE_NEWCGROUP)
#define NEWTIME 0x00000080 /* of unshare only: in clone these bits are the exit signal */

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#else
#error "the filter is written for x86-64 and aarch64"
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define ANY_OF(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (yes), (no))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))

/*
 * What depends on an argument stands before libseccomp's part, which cannot say "neither 0 nor ~0"
 * and needs a rule for each bit. The kernel reads these arguments as 32 bits, and so do we (both
 * architectures are little-endian). Jumps count the instructions to skip; one past the end falls
 * into libseccomp's part.
 */
static const struct sock_filter by_argument[] = {
    LOAD(arch),
    EQUAL(NATIVE, 0, 17),
    LOAD(nr),
    EQUAL(__NR_clone, 3, 0),
    EQUAL(__NR_unshare, 4, 0),
    EQUAL(__NR_ioctl, 5, 0),
    EQUAL(__NR_personality, 7, 12),
    LOAD(args[0]),
    ANY_OF(NAMESPACES, 8, 9),
    LOAD(args[0]),
    ANY_OF(NAMESPACES | NEWTIME, 6, 7),
    LOAD(args[1]),
    EQUAL(TIOCSTI, 4, 0),
    EQUAL(TIOCLINUX, 3, 4),
    LOAD(args[0]),
    EQUAL(0, 2, 0),
    EQUAL(PERSONALITY_QUERY, 1, 0),
    RETURN(SECCOMP_RET_ERRNO | EPERM),
    RETURN(SECCOMP_RET_ALLOW),
};

/* Refused with EPERM, by name: libseccomp knows which of them an architecture has. */
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

static int allow_worker(scmp_filter_ctx ctx)
{
    for (size_t i = 0; i < NK_COUNT(worker_allowed); i++) {
        int nr = seccomp_syscall_resolve_name(worker_allowed[i]);
        int rc = nr < 0 ? 0 : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);

        if (rc < 0)
            return rc;
    }
    return 0;
}

static int add_rules(scmp_filter_ctx ctx)
{
    for (size_t i = 0; i < NK_COUNT(denied); i++) {
        int nr = seccomp_syscall_resolve_name(denied[i]);
        int rc;

        if (nr == __NR_SCMP_ERROR)
            continue;
        rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), nr, 0);
        /* A call that this architecture lacks cannot be made, nor denied. */
        if (rc < 0 && rc != -EDOM)
            return rc;
    }
    return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

/* The program as libseccomp writes it: an array of struct sock_filter in a memory file. */
static int export(scmp_filter_ctx ctx, const struct sock_filter *front, size_t front_count,
                  struct nk_filter *out)
{
    nk_auto_fd int fd = memfd_create("filter", MFD_CLOEXEC);
    nk_auto_free void *program = NULL;
    struct sock_filter *at;
    struct stat st;
    size_t size;
    int rc;

    if (fd < 0)
        return -errno;
    rc = seccomp_export_bpf(ctx, fd);
    if (rc < 0)
        return rc;
    if (fstat(fd, &st) < 0)
        return -errno;
    size = (size_t)st.st_size;
    if (size == 0 || size > (BPF_MAXINSNS - front_count) * sizeof *at)
        return -E2BIG;
    program = malloc(front_count * sizeof *at + size);
    if (!program)
        return -ENOMEM;
    at = program;
    if (front_count > 0)
        memcpy(at, front, front_count * sizeof *at);
    if (pread(fd, at + front_count, size, 0) != (ssize_t)size)
        return -EIO;
    out->count = (unsigned short)(front_count + size / sizeof *at);
    out->program = nk_take_ptr(&program);
    return 0;
}

int nk_confine_compile(struct nk_filter *out, struct nk_err *err)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    int rc;

    if (!ctx)
        return nk_fail(err, NK_OVERLOADED, "cannot compile the seccomp filter: out of memory");
    /* Another architecture's numbers (i386, x32) mean other calls: such a program is killed. */
    rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (rc == 0)
        (void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (rc == 0)
        rc = add_rules(ctx);
    if (rc == 0)
        rc = export(ctx, by_argument, NK_COUNT(by_argument), out);
    seccomp_release(ctx);
    return rc == 0 ? 0 : nk_fail_sys(err, -rc, "cannot compile the seccomp filter");
}

int nk_confine_compile_worker(struct nk_filter *out, struct nk_err *err)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    int rc;

    if (!ctx)
        return nk_fail(err, NK_OVERLOADED, "cannot compile the worker's filter: out of memory");
    rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (rc == 0)
        rc = allow_worker(ctx);
    if (rc == 0)
        rc = export(ctx, NULL, 0, out);
    seccomp_release(ctx);
    return rc == 0 ? 0 : nk_fail_sys(err, -rc, "cannot compile the worker's filter");
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
