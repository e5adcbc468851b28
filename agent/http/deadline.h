/*
 * How long a connection may wait for its client in the state it is in.
 *
 * The deadline is computed from what has happened, when the timer fires or the state changes; the
 * timer is moved only when it would fire too late, so bytes that come in time cost nothing.
 */
#ifndef NK_HTTP_DEADLINE_H
#define NK_HTTP_DEADLINE_H

#include <stdint.h>

#include "http/inside.h"

#define NK_LINGER_MS 2000u

enum nk_wait {
    NK_WAIT_NOTHING, /* of the client; a handler or a source may take its time */
    NK_WAIT_IDLE,
    NK_WAIT_HEAD,
    NK_WAIT_BODY,
    NK_WAIT_WRITE,
    NK_WAIT_LINGER,
};

/* What is waited for, and until when in loop time (UINT64_MAX: for ever). */
enum nk_wait nk_deadline_of(const struct nk_conn *c, uint64_t *out_ms);

/* Makes the timer fire no later than the deadline. */
void nk_deadline_arm(struct nk_conn *c, uv_timer_cb fired);

#endif
