/*
 * What a command may not do: the seccomp filter, compiled once, and the capability sets.
 *
 * libseccomp only knows the calls; the program is our own, and installing it is a raw system call in
 * the thread that starts children, or in a child. The filter denies with EPERM or ENOSYS and allows
 * the rest: the sandbox's kernel is the real wall.
 */
#ifndef NK_PROCESS_CONFINE_H
#define NK_PROCESS_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"

struct nk_filter {
    void *program; /* owned: struct sock_filter[] */
    unsigned short count;
};

/* The default list (hardening: mounts, ptrace, modules, bpf, keys, namespaces, io_uring, TIOCSTI…;
 * clone3 answers ENOSYS so that libc falls back). */
int nk_confine_compile(struct nk_filter *out, struct nk_err *err);
/* What a profile of container runtimes says instead. Such a filter may deny what the daemon needs, so
 * only children install it. */
int nk_confine_compile_file(const char *path, struct nk_filter *out, struct nk_err *err);
/* The strict list of the archive worker, which installs it in itself: it allows what is named and
 * answers the rest with ENOSYS. */
int nk_confine_compile_worker(struct nk_filter *out, struct nk_err *err);
void nk_confine_fini(struct nk_filter *f);

/* no_new_privs, then the filter, on the calling thread only. Raw: usable between clone and exec.
 * 0 or -errno. */
NK_RAW int nk_confine_apply(const struct nk_filter *f);
/* Empties the calling thread's effective, permitted, inheritable and ambient sets. Raw. 0 or -errno. */
NK_RAW int nk_confine_drop_caps(void);
/* Empties its bounding set, which needs CAP_SETPCAP and so comes before the ids are given up; what
 * the thread has stays, what it executes gets nothing. Raw. 0, or the last -errno. */
NK_RAW int nk_confine_drop_bounding(void);
NK_RAW bool nk_confine_bounded(void); /* the bounding set is empty */
/* The daemon: keeps CHOWN DAC_OVERRIDE FOWNER KILL SETGID SETUID SETPCAP, drops the rest, dumpable
 * off, core limit 0. Best effort; as root only the first. */
void nk_confine_daemon(void);

#endif
