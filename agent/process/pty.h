/*
 * A pseudo terminal: a pair of descriptors, and what is asked of it through the master.
 *
 * Plain functions; the descriptors belong to the caller. Nothing blocks, and no terminal ever becomes
 * that of the daemon.
 */
#ifndef NK_PROCESS_PTY_H
#define NK_PROCESS_PTY_H

#include <stdint.h>
#include <sys/types.h>

#include "base/creds.h"

#define NK_PTY_NO_BYTE '\n' /* what "the last byte" is before there was one */

/* The master does not block; the slave has the usual settings and the size, and is its owner's where
 * we may give it away (NULL: it stays ours). 0 or -errno. */
int nk_pty_open(unsigned cols, unsigned rows, const struct nk_creds *owner, int *out_master,
                int *out_slave);

int nk_pty_resize(int master, unsigned cols, unsigned rows); /* 0 or -errno */

/* The group in the foreground, if it is one of this session; 0: none. */
pid_t nk_pty_foreground(int master, pid_t session);

/* How often *out_byte must be written so that a program that reads sees the end of its input: twice
 * where the line is not empty, since the first then only ends the line. 0: the program has switched
 * that character off. `last`: the byte that was written last. */
unsigned nk_pty_end_of_input(int master, uint8_t last, uint8_t *out_byte);

#endif
