/*
 * TCP ports that commands listen on: from the kernel's listening sockets and the descriptors of
 * their trees.
 *
 * Blocking: called in jobs, as the user whose processes are looked at (under a pod's default
 * capabilities root may not read another user's descriptors). Owns nothing.
 */
#ifndef NK_PROCESS_PORTS_H
#define NK_PROCESS_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NK_PORTS_MAX 1024 /* sockets looked at; more are left out */

struct nk_port {
    gid_t mark;    /* of the tree that holds it; 0: none of the range */
    pid_t session; /* of the process that holds it */
    uint16_t port;
};

/* Listening sockets of `uid`, and who holds them. Each holder once a port; at most `max`. How many
 * were written, or -errno. Marks are first … first + count - 1. `diag`: the kernel has
 * NK_MECH_SOCK_DIAG. */
int nk_ports_find(bool diag, uid_t uid, gid_t first, unsigned count, struct nk_port *out,
                  size_t max);

#endif
