/*
 * All processes of a command, found in /proc: by its mark, or (where there are no marks) by its
 * session and descendants. Also those of several commands, or of a set of users, in one pass.
 *
 * Blocking: called in jobs only. Owns nothing. With pidfd a signal reaches exactly the process that
 * was looked at; without, the number is looked at right before.
 */
#ifndef NK_PROCESS_TREE_H
#define NK_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Which of `count` uids from `first` on: a byte each. */
struct nk_uid_set {
    uid_t first;
    unsigned count;
    const uint8_t *member; /* borrowed */
};

static inline bool nk_uid_set_has(const struct nk_uid_set *s, uid_t uid)
{
    return uid >= s->first && uid - s->first < s->count && s->member[uid - s->first];
}

struct nk_tree {
    gid_t mark;           /* 0: go by `leader` */
    pid_t leader;         /* of the session */
    bool pidfd;           /* nk_has(kernel, NK_MECH_PIDFD) */
    pid_t but;            /* members of this process group are left out; 0: nobody is */
    unsigned marks;       /* that many from `mark` on; 0: one */
    const uint8_t *which; /* borrowed; a byte a mark: of these only such; NULL: all */
    const pid_t *leaders; /* borrowed: instead of `leader`, that many */
    size_t leader_count;
    const struct nk_uid_set
        *uids; /* borrowed: whoever is one of them, too; NULL: by the mark only */
};

/* Once to each. How many live (not zombie) processes were found and signalled, or -errno; 0 looks only.
 * Of a signal that can be blocked, who was started while it was held back is told, too: at most 100 ms
 * later. */
int nk_tree_signal(const struct nk_tree *t, int signo);

/* KILL, pass after pass, until two in a row find nothing; one that grows is stopped before. 0, or
 * -ETIMEDOUT. */
int nk_tree_kill(const struct nk_tree *t, uint64_t deadline_ms);

/* Which of the marks first … first + count - 1 somebody carries: one pass, a byte each in `alive`. */
int nk_tree_alive(gid_t first, unsigned count, uint8_t *alive);

/* Who of these somebody runs as: one pass, a byte each in `alive`. */
int nk_tree_users(uid_t first, unsigned count, uint8_t *alive);

/* STOP to whatever carries one of the marks and is not stopped yet, pass after pass, until two in a
 * row find nothing to stop; CONT to all, once. 0, -ETIMEDOUT or -errno. */
int nk_tree_freeze(gid_t first, unsigned count, bool freeze, uint64_t deadline_ms);

/* One pass over the live processes that carry one of the marks. `proc` is a descriptor of /proc. */
typedef void (*nk_tree_fn)(int proc, pid_t pid, gid_t mark, void *ctx);
int nk_tree_each(gid_t first, unsigned count, nk_tree_fn fn, void *ctx);

/* To which tree one process belongs. `proc` is a descriptor of /proc. */
struct nk_tree_holder {
    bool known; /* false: it is gone */
    gid_t mark; /* 0: it carries none of the range */
    pid_t session;
};
struct nk_tree_holder nk_tree_holder_of(int proc, const char *pid, gid_t first, unsigned count);

#endif
