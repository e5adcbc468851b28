/*
 * Standard input of a process, sent piece by piece with positions, so that a cut sender can resume.
 *
 * Bytes are copied into a bounded queue and written as the program reads. The input of a terminal is
 * open from the start; its end is the terminal's EOF character. Loop thread only.
 */
#ifndef NK_PROCESS_STDIN_H
#define NK_PROCESS_STDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct nk_process;

#define NK_STDIN_MAX (256u * 1024u) /* bytes that wait for the program */
#define NK_STDIN_NEXT UINT64_MAX

struct nk_stdin_piece {
    const void *data; /* borrowed for the call */
    size_t len;
    uint64_t offset; /* of data[0] in all input ever sent; NK_STDIN_NEXT: wherever that is */
    bool close;      /* nothing comes after it */
};

/* Known bytes are skipped, a gap is NK_CONFLICT, more than nk_stdin_room NK_OVERLOADED, an input that
 * is not open NK_CONFLICT (but the repeat of what closed it). */
int nk_stdin_write(struct nk_process *p, const struct nk_stdin_piece *piece, struct nk_err *err);
/* As much of it as there is room for; `piece` then begins behind that. 1: all was taken, 0: there is
 * more to push when there is room (NK_PROC_EV_INPUT), -1 with err. */
int nk_stdin_push(struct nk_process *p, struct nk_stdin_piece *piece, struct nk_err *err);
size_t nk_stdin_room(const struct nk_process *p);
uint64_t nk_stdin_offset(const struct nk_process *p); /* bytes ever taken */
bool nk_stdin_is_open(const struct nk_process *p);

#endif
