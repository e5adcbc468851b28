/*
 * Reading what several handlers take: the process of a path, a wait, an offset, a signal. Loop
 * thread only.
 */
#ifndef NK_API_READ_H
#define NK_API_READ_H

#include <stdint.h>

#include "base/err.h"

#define NK_READ_LIST_MAX 100000

struct nk_json;
struct nk_process;
struct nk_req;

/* The one that `{id}` names, borrowed; NULL with NK_NOT_FOUND. */
struct nk_process *nk_read_process(struct nk_req *req, struct nk_err *err);
/* `?wait=SECONDS`, fractions allowed. */
int nk_read_wait(const struct nk_req *req, uint64_t max_ms, uint64_t *out_ms, struct nk_err *err);
/* A position in the log of `p`: 410 with log_start where it is no longer held, 400 past the end. */
int nk_read_offset(const struct nk_process *p, uint64_t pos, struct nk_err *err);
/* The member `signal`, a name or a number; absent: *out stays. NK_BAD_SIGNAL. */
int nk_read_signal(const struct nk_json *object, int *out, struct nk_err *err);

#endif
