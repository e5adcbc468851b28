/*
 * What of a sandbox's lifetime outlasts a daemon: kept as a small file of the state folder, which a
 * new daemon reads.
 *
 * Deadlines are on CLOCK_BOOTTIME, which goes on over a restart of the daemon and knows no jumps. Only
 * after a restart of the machine the wall clock tells how long that took, and never less than nothing.
 * Plain values; blocking, but small.
 */
#ifndef NK_LIFETIME_LASTING_H
#define NK_LIFETIME_LASTING_H

#include <stdint.h>

#define NK_LASTING_ID_MAX 256

struct nk_lasting {
    char id[NK_LASTING_ID_MAX]; /* whose it is; another sandbox's is not read */
    int64_t created_ms;         /* wall clock */
    uint64_t expires_ms;        /* on the boot clock, in each; 0: never */
    uint64_t idle_ms;           /* the idle time; 0: none */
    uint64_t active_ms;
    uint64_t ttl_option_ms, idle_option_ms; /* what the daemon was started with */
};

/* Of the sandbox `id`, its times on this boot's clock. 0 or -errno; -ENOENT also for another's. */
int nk_lasting_read(const char *folder, const char *id, struct nk_lasting *out);

/* Replaces the file at once or not at all. 0 or -errno; it makes no folder. */
int nk_lasting_write(const char *folder, const struct nk_lasting *l);
void nk_lasting_remove(const char *folder);

#endif
