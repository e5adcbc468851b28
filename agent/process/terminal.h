/*
 * The terminal of a command: made before its start, resized and hung up while it lives.
 *
 * Private to process/. Hangs off nk_live, which has the descriptors: the master is the one output,
 * a second descriptor of it is the input. Loop thread only. It makes up for what some kernels leave
 * out: to tell of a new size, to hang up, to know the EOF character.
 */
#ifndef NK_PROCESS_TERMINAL_H
#define NK_PROCESS_TERMINAL_H

#include <uv.h>

#include "process/live.h"

#define NK_HANG_UP_MS 2000 /* from an EOF character that the kernel does not know to HUP */

/* The slave stays open here until the command is reaped: a program that closes all three on its way
 * out would else end the terminal, and so be hung up before its own end. */
struct nk_terminal {
    int slave;          /* owned; -1: closed */
    uv_timer_t tell;    /* of a new size, in a turn of the loop of its own */
    uv_timer_t hang_up; /* after the end of input */
};

/* Sets the descriptors of `l`. NK_NOT_SUPPORTED: there are no terminals here. */
int nk_terminal_make(struct nk_live *l, const struct nk_command *cmd, struct nk_err *err);
void nk_terminal_open(struct nk_live *l, uv_loop_t *loop);
void nk_terminal_close(struct nk_live *l); /* also where it was only made, or not even that */

int nk_terminal_resize(struct nk_live *l, unsigned cols, unsigned rows); /* 0 or -errno */
pid_t nk_terminal_foreground(const struct nk_live *l);                   /* 0: none */
bool nk_terminal_is_blind(const struct nk_live *l); /* its kernel does not tell who is in front */
void nk_terminal_input_ended(struct nk_live *l);    /* the EOF character is out */
void nk_terminal_reaped(
    struct nk_live *l); /* the session's leader: who is left in front learns it */

#endif
