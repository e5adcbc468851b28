/*
 * Ctrl-C, TERM, HUP and QUIT while a verb waits: read from a descriptor beside the others.
 *
 * Between open and close they are blocked (one that was ignored at the start stays ignored), and
 * every wait of the verb goes through nk_interrupt_wait. One thread, one at a time.
 */
#ifndef NK_CLI_INTERRUPT_H
#define NK_CLI_INTERRUPT_H

#include <stdbool.h>

struct nk_interrupt {
    int fd;           /* -1: none is open; waits then end by their own event alone */
    bool with_reader; /* a wait also ends when nobody reads standard output any more, as by PIPE */
};

int nk_interrupt_open(struct nk_interrupt *i); /* 0 or -errno */
void nk_interrupt_close(struct nk_interrupt *i);

/* 0: one of the poll events of `fd` came; 128 + N: signal N did; -ETIMEDOUT; -errno.
 * `timeout_ms` -1 waits as long as it takes, for what a person holds up and can interrupt. */
int nk_interrupt_wait(const struct nk_interrupt *i, int fd, short events, int timeout_ms);

#endif
