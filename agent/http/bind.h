/*
 * Listening sockets: made, bound, listening, non-blocking.
 *
 * Addresses are numeric: no name is ever looked up. Runs at start, on the loop thread.
 */
#ifndef NK_HTTP_BIND_H
#define NK_HTTP_BIND_H

#include <sys/types.h>

#include "base/err.h"

/* The file that a Unix socket made, to remove that one and no other. */
struct nk_bind_file {
    char *path; /* owned; NULL: none */
    dev_t dev;
    ino_t ino;
};

int nk_bind_tcp(const char *addr, int *out_fd, unsigned *out_port, struct nk_err *err);
int nk_bind_unix(const char *path, int *out_fd, struct nk_bind_file *out_file, struct nk_err *err);
int nk_bind_vsock(unsigned port, int *out_fd, struct nk_err *err);

/* Removes the socket unless another has taken its place; releases the path. */
void nk_bind_file_fini(struct nk_bind_file *file);

#endif
