/*
 * What this kernel really does, found out by trying, not by its version.
 *
 * Run once at start (a few ms, in throw-away children and threads; the slow part after the socket
 * already listens). `--without NAME` makes a mechanism act as missing. The result is shown in
 * /v1/capabilities and handed to the rooms that choose by it; it never changes afterwards.
 */
#ifndef NK_PROCESS_PROBE_H
#define NK_PROCESS_PROBE_H

#include <stdbool.h>
#include <stdint.h>

/* The first are in the order of --without's choices. */
enum nk_mech {
    NK_MECH_OPENAT2,
    NK_MECH_CLOSE_RANGE,
    NK_MECH_PIDFD,
    NK_MECH_SUBREAPER,
    NK_MECH_CGROUP,
    NK_MECH_LANDLOCK,
    NK_MECH_TERMINAL,         /* a pseudo terminal can be opened */
    NK_MECH_TERMINAL_SIGNALS, /* who is in front is told of a new size and of a hang-up */
    NK_MECH_TERMINAL_EOF,     /* its EOF character ends the input */
    NK_MECH_SOCK_DIAG,        /* listening sockets are told without a walk of all connections */
    NK_MECH_SECCOMP,          /* filter installs and denies, in a throw-away child */
    NK_MECH_UID_DROP,         /* setgroups, setresgid, setresuid in a child; 0 cannot be regained */
    NK_MECH_THREAD_IDS,       /* a thread's effective ids are judged, and come back */
    NK_MECH_MARK,             /* a supplementary group shows in /proc */
    NK_MECH_KILL_TREE,        /* what a tree can be killed by is there */
    NK_MECH_PEER_CREDS,
    NK_MECH_PROC,       /* /proc is mounted */
    NK_MECH_IDENTITIES, /* users can be kept apart; said by who starts them (nk_probe_set) */
    NK_MECH_COUNT,
};

struct nk_mech_state {
    bool available;
    char reason[96]; /* why not: "ENOSYS", "disabled by --without", …; empty where available */
};

struct nk_kernel {
    struct nk_mech_state mech[NK_MECH_COUNT];
    bool complete; /* the slow part is over too: /readyz */
};

const char *nk_probe_name(enum nk_mech m); /* "openat2", …: the wire's names */
int nk_probe_mech(const char *name);       /* the enum value, or -1 */

/* The part that costs microseconds; `without`: 1 << enum nk_mech. */
void nk_probe_quick(struct nk_kernel *k, uint32_t without);
/* The part with children. Blocking, a few ms: the loop is not serving yet, or it runs in a job.
 * `uid`/`gid`: whom commands run as. */
struct nk_creds;
void nk_probe_slow(struct nk_kernel *k, uint32_t without, const struct nk_creds *as);

/* Makes the control groups, if they can be made; what is open stays so. Blocking; before the slow
 * part, which does not look at them again. */
struct nk_cgroups;
void nk_probe_groups(struct nk_kernel *k, uint32_t without, struct nk_cgroups *out);
/* What a higher room found out; an empty reason: available. */
void nk_probe_set(struct nk_kernel *k, enum nk_mech m, const char *reason);
/* Blocking, a few ms: whether a child and a thread can become this user. 0 or -errno. */
int nk_probe_user(const struct nk_creds *as);

static inline bool nk_has(const struct nk_kernel *k, enum nk_mech m)
{
    return k->mech[m].available;
}

#endif
