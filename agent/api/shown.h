/*
 * What a run in a context shows, in its place in the output: for streams and sessions.
 *
 * A cursor of one reader; loop thread only.
 */
#ifndef NK_API_SHOWN_H
#define NK_API_SHOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nk_display;
struct nk_process;

struct nk_shown {
    bool on;     /* set by the owner: the reader wants them */
    size_t next; /* index of the first that has not been told */
};

/* The one that is due at `pos`, or NULL. nk_shown_told follows. */
const struct nk_display *nk_shown_due(const struct nk_shown *s, const struct nk_process *p,
                                      uint64_t pos);
void nk_shown_told(struct nk_shown *s, const struct nk_process *p);
/* Where output is cut for the next one: its place, or the end of the stream. */
uint64_t nk_shown_end(const struct nk_shown *s, const struct nk_process *p);

#endif
