#include "process/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"
#include "process/filter.h"
#include "process/profile.h"

#define PROFILE_MAX (1024 * 1024) /* bytes of a profile */
#define BY_TREE 2                 /* libseccomp's search tree over the numbers */

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
    "rt_sigprocmask", "rt_sigaction", "exit_group", "restart_syscall", "flock",
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

static uint32_t action_of(const struct nk_profile_verdict *v)
{
    switch (v->action) {
    case NK_PROFILE_ERRNO:
        return SCMP_ACT_ERRNO(v->error);
    case NK_PROFILE_KILL:
        return SCMP_ACT_KILL_PROCESS;
    case NK_PROFILE_KILL_THREAD:
        return SCMP_ACT_KILL_THREAD;
    case NK_PROFILE_TRAP:
        return SCMP_ACT_TRAP;
    case NK_PROFILE_LOG:
        return SCMP_ACT_LOG;
    default:
        return SCMP_ACT_ALLOW;
    }
}

static int begin_profile(const struct nk_profile_verdict *otherwise, void *ctx, struct nk_err *err)
{
    scmp_filter_ctx *filter = ctx;

    *filter = seccomp_init(action_of(otherwise));
    if (!*filter)
        return nk_fail(err, NK_OVERLOADED, "no memory for a seccomp filter");
    (void)seccomp_attr_set(*filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    (void)seccomp_attr_set(*filter, SCMP_FLTATR_CTL_OPTIMIZE, BY_TREE);
    return 0;
}

/* A call that this architecture has not, or that is treated as all others are, needs no rule. */
static int add_rule(const struct nk_profile_rule *rule, void *ctx, struct nk_err *err)
{
    const scmp_filter_ctx *filter = ctx;
    struct scmp_arg_cmp args[NK_PROFILE_ARGS];
    int nr = seccomp_syscall_resolve_name(rule->name);
    int rc;

    if (nr < 0)
        return 0;
    for (unsigned i = 0; i < rule->arg_count; i++) {
        const struct nk_profile_arg *a = &rule->arg[i];

        args[i] = (struct scmp_arg_cmp){.arg = a->index,
                                        .op = (enum scmp_compare)(SCMP_CMP_NE + (int)a->op),
                                        .datum_a = a->value,
                                        .datum_b = a->value_two};
    }
    rc = seccomp_rule_add_array(*filter, action_of(&rule->verdict), nr, rule->arg_count, args);
    if (rc < 0 && rc != -EACCES)
        return nk_fail_sys(err, -rc, "cannot add a rule for %.80s", rule->name);
    return 0;
}

static int take_program(scmp_filter_ctx filter, struct nk_filter *out)
{
    nk_auto_fd int fd = memfd_create("filter", MFD_CLOEXEC);
    nk_auto_free void *program = NULL;
    struct stat st;
    int rc = fd < 0 ? -errno : seccomp_export_bpf(filter, fd);

    if (rc < 0)
        return rc;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size / (off_t)sizeof(struct sock_filter) > BPF_MAXINSNS)
        return -E2BIG;
    program = malloc((size_t)st.st_size);
    if (!program)
        return -ENOMEM;
    if (pread(fd, program, (size_t)st.st_size, 0) != st.st_size)
        return -EIO;
    out->count = (unsigned short)((size_t)st.st_size / sizeof(struct sock_filter));
    out->program = nk_take_ptr(&program);
    return 0;
}

static int read_file(const char *path, char *text, size_t *out_len)
{
    nk_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t len = 0;
    ssize_t n = fd < 0 ? -1 : 1;

    while (n > 0 && len < PROFILE_MAX) {
        n = read(fd, text + len, PROFILE_MAX - len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (n < 0)
        return -errno;
    *out_len = len;
    return len < PROFILE_MAX ? 0 : -EFBIG;
}

int nk_confine_compile_file(const char *path, struct nk_filter *out, struct nk_err *err)
{
    scmp_filter_ctx filter = NULL;
    const struct nk_profile_reader reader = {begin_profile, add_rule, &filter};
    nk_auto_free char *text = malloc(PROFILE_MAX);
    struct nk_err why;
    size_t len = 0;
    int rc = text ? read_file(path, text, &len) : -ENOMEM;

    if (rc < 0)
        return nk_fail_sys(err, -rc, "--seccomp: %.150s", path);
    rc = nk_profile_read(text, len, &reader, &why);
    if (rc < 0)
        (void)nk_fail(err, NK_BAD_REQUEST, "--seccomp: %.80s: %.150s", path, why.msg);
    else if ((rc = take_program(filter, out)) < 0)
        (void)nk_fail_sys(err, -rc, "--seccomp: %.80s", path);
    if (filter)
        seccomp_release(filter);
    return rc < 0 ? -1 : 0;
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
