#include "process/filter.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#else
#error "the filter is written for x86-64 and aarch64"
#endif

#define FOREIGN 0x40000000u /* from here on: x32, whose numbers mean other calls */
#define PERSONA_QUERY 0xffffffffu
#define NAMESPACES                                                                                 \
    (CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |     \
     CLONE_NEWCGROUP)
#define NEWTIME 0x00000080 /* of unshare only: in clone these bits are the exit signal */

#define SEGMENTS_MAX (2 * NK_FILTER_CALLS_MAX + 2)
#define CODE_MAX 250 /* a jump reaches 255 */
#define NEXT NK_VERDICT_COUNT

/* Numbers from `first` to before the next segment's have one verdict. */
struct segment {
    unsigned first;
    enum nk_verdict verdict;
};

/* Until they are settled, jumps below NEXT name a verdict; from there on they are distances. */
struct program {
    struct sock_filter code[CODE_MAX];
    unsigned count; /* counts on where there is no room, and then it fails */
    struct segment segments[SEGMENTS_MAX];
    size_t segment_count;
};

static int by_number(const void *a, const void *b)
{
    const struct nk_filter_call *x = a, *y = b;

    return (x->nr > y->nr) - (x->nr < y->nr);
}

static void add_segment(struct program *p, unsigned first, enum nk_verdict verdict)
{
    struct segment *last = p->segment_count ? &p->segments[p->segment_count - 1] : NULL;

    if (last && last->verdict == verdict)
        return;
    if (last && last->first == first) {
        p->segment_count--;
        add_segment(p, first, verdict);
        return;
    }
    p->segments[p->segment_count++] = (struct segment){first, verdict};
}

static void make_segments(struct program *p, struct nk_filter_call *calls, size_t count,
                          enum nk_verdict otherwise)
{
    qsort(calls, count, sizeof *calls, by_number);
    add_segment(p, 0, otherwise);
    for (size_t i = 0; i < count; i++) {
        add_segment(p, calls[i].nr, calls[i].verdict);
        add_segment(p, calls[i].nr + 1, otherwise);
    }
    add_segment(p, FOREIGN, NK_VERDICT_KILL);
}

static void emit(struct program *p, int code, uint32_t k, unsigned yes, unsigned no)
{
    if (p->count < CODE_MAX)
        p->code[p->count] =
            (struct sock_filter){(unsigned short)code, (uint8_t)yes, (uint8_t)no, k};
    p->count++;
}

static void load(struct program *p, size_t offset)
{
    emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void give(struct program *p, uint8_t label[NEXT], enum nk_verdict verdict, uint32_t action)
{
    label[verdict] = (uint8_t)p->count;
    emit(p, BPF_RET | BPF_K, action, 0, 0);
}

/* The segments [low, high), of which there are at least two. */
static void emit_tree(struct program *p, size_t low, size_t high)
{
    size_t middle = low + (high - low) / 2;
    unsigned at = p->count;
    unsigned yes = p->segments[middle].verdict, no = p->segments[low].verdict;

    emit(p, BPF_JMP | BPF_JGE | BPF_K, p->segments[middle].first, 0, 0);
    if (middle - low > 1) {
        no = NEXT;
        emit_tree(p, low, middle);
    }
    if (high - middle > 1) {
        yes = NEXT + p->count - at - 1;
        emit_tree(p, middle, high);
    }
    if (at < CODE_MAX) {
        p->code[at].jt = (uint8_t)yes;
        p->code[at].jf = (uint8_t)no;
    }
}

/* The kernel reads these arguments as 32 bits, and so do we; both architectures are little-endian,
 * so that half comes first. */
static void emit_arguments(struct program *p, uint8_t label[NEXT])
{
    const size_t first = offsetof(struct seccomp_data, args[0]);
    const int any = BPF_JMP | BPF_JSET | BPF_K, equal = BPF_JMP | BPF_JEQ | BPF_K;

    label[NK_VERDICT_CLONE] = (uint8_t)p->count;
    load(p, first);
    emit(p, any, NAMESPACES, NK_VERDICT_DENY, NK_VERDICT_ALLOW);
    label[NK_VERDICT_UNSHARE] = (uint8_t)p->count;
    load(p, first);
    emit(p, any, NAMESPACES | NEWTIME, NK_VERDICT_DENY, NK_VERDICT_ALLOW);
    label[NK_VERDICT_IOCTL] = (uint8_t)p->count;
    load(p, offsetof(struct seccomp_data, args[1]));
    emit(p, equal, TIOCSTI, NK_VERDICT_DENY, NEXT);
    emit(p, equal, TIOCLINUX, NK_VERDICT_DENY, NK_VERDICT_ALLOW);
    label[NK_VERDICT_PERSONA] = (uint8_t)p->count;
    load(p, first);
    emit(p, equal, 0, NK_VERDICT_ALLOW, NEXT);
    emit(p, equal, PERSONA_QUERY, NK_VERDICT_ALLOW, NK_VERDICT_DENY);
}

static uint8_t distance(unsigned at, unsigned target, const uint8_t label[NEXT])
{
    return (uint8_t)(target < NEXT ? label[target] - at - 1 : target - NEXT);
}

static void settle(struct program *p, const uint8_t label[NEXT])
{
    for (unsigned at = 0; at < p->count; at++) {
        struct sock_filter *f = &p->code[at];

        if (BPF_CLASS(f->code) != BPF_JMP)
            continue;
        f->jt = distance(at, f->jt, label);
        f->jf = distance(at, f->jf, label);
    }
}

static int write_program(struct program *p)
{
    uint8_t label[NEXT] = {0};

    load(p, offsetof(struct seccomp_data, arch));
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, NATIVE, NEXT, NK_VERDICT_KILL);
    load(p, offsetof(struct seccomp_data, nr));
    emit_tree(p, 0, p->segment_count);
    emit_arguments(p, label);
    give(p, label, NK_VERDICT_ALLOW, SECCOMP_RET_ALLOW);
    give(p, label, NK_VERDICT_DENY, SECCOMP_RET_ERRNO | EPERM);
    give(p, label, NK_VERDICT_MISSING, SECCOMP_RET_ERRNO | ENOSYS);
    give(p, label, NK_VERDICT_KILL, SECCOMP_RET_KILL_PROCESS);
    if (p->count > CODE_MAX)
        return -E2BIG;
    settle(p, label);
    return 0;
}

int nk_filter_build(struct nk_filter_call *calls, size_t count, enum nk_verdict otherwise,
                    struct nk_filter *out)
{
    struct program p = {.count = 0};
    int rc;

    if (count > NK_FILTER_CALLS_MAX)
        return -E2BIG;
    make_segments(&p, calls, count, otherwise);
    rc = write_program(&p);
    if (rc < 0)
        return rc;
    out->program = malloc(p.count * sizeof *p.code);
    if (!out->program)
        return -ENOMEM;
    memcpy(out->program, p.code, p.count * sizeof *p.code);
    out->count = (unsigned short)p.count;
    return 0;
}
