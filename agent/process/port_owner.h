/*
 * Whose server would answer a connection to a port of loopback.
 *
 * The kernel is asked as it would decide itself (socket diagnosis), else /proc/net/tcp is read by its
 * rules. Blocking, for jobs: microseconds, or milliseconds. Owns nothing.
 */
#ifndef NK_PROCESS_PORT_OWNER_H
#define NK_PROCESS_PORT_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* `family` AF_INET: 127.0.0.1, AF_INET6: ::1. `diag`: the kernel has sock_diag (the probe says so).
 * 0; -ENOENT: nobody listens; -EEXIST: more than one user does, and which one cannot be told. */
int nk_port_owner_find(bool diag, int family, uint16_t port, uid_t *out_uid);

#endif
