/*
 * How far a copy has come: one line on standard error, where that is a terminal.
 *
 * Owned by the verb; one thread. Silent everywhere else.
 */
#ifndef NK_CLI_PROGRESS_H
#define NK_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct nk_progress {
    bool on;
    uint64_t bytes;
    uint64_t began_ms;
    uint64_t shown_ms; /* 0: nothing is on the line */
};

void nk_progress_init(struct nk_progress *p);
void nk_progress_add(struct nk_progress *p, uint64_t bytes);
void nk_progress_end(struct nk_progress *p); /* clears the line */

#endif
