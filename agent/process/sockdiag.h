/*
 * The listening TCP sockets of a user, as the kernel's socket diagnosis tells them.
 *
 * /proc/net/tcp says the same, but walks every connection there could be, which takes milliseconds.
 * Not every kernel has it: the probe says whether this one does. Any thread; blocks for
 * microseconds, a second at most.
 */
#ifndef NK_PROCESS_SOCKDIAG_H
#define NK_PROCESS_SOCKDIAG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct nk_sockdiag_entry {
    unsigned long inode;
    uint16_t port;
};

/* Whose socket a connection to that port of 127.0.0.1 (AF_INET) or ::1 (AF_INET6) would come to.
 * 0, -ENOENT, or -errno. */
int nk_sockdiag_owner(int family, uint16_t port, uid_t *out_uid);

/* How many of them are in `out` now, of both address families; or -errno. */
int nk_sockdiag_listening(uid_t uid, struct nk_sockdiag_entry *out, size_t max);

#endif
