/*
 * The terminal that a person sits at: its size, and its raw mode while keys go to another one.
 *
 * Whoever makes it raw restores it on every way out. One thread.
 */
#ifndef NK_CLI_TERM_H
#define NK_CLI_TERM_H

#include <stdbool.h>
#include <termios.h>

struct nk_term {
    int fd; /* borrowed */
    bool raw;
    struct termios before;
};

int nk_term_make_raw(struct nk_term *t, int fd); /* 0 or -errno */
void nk_term_restore(struct nk_term *t);         /* nothing where it is not raw */

/* Of the first of standard input and output that is a terminal with a size; false: of neither. */
bool nk_term_size(unsigned *out_cols, unsigned *out_rows);

#endif
