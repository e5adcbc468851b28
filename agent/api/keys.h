/*
 * Idempotency keys: what was started under a key is started once.
 *
 * A key belongs to an owner and a route. The first request under it claims it and binds the process
 * it started; a repeat with the same body joins that process or gets its result, and one with another
 * body is a conflict. Kept NK_KEYS_KEEP_MS after the end. At most NK_KEYS_MAX keys and
 * NK_KEYS_BYTES of results an owner; a held record is outside the registry's bounds. A refusal that
 * a later try could overcome (busy, overloaded, …) is not remembered; a failed start is.
 * Owned by app; loop thread only.
 */
#ifndef NK_API_KEYS_H
#define NK_API_KEYS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/list.h"

struct nk_key;
struct nk_keys;
struct nk_process;
struct nk_req;

#define NK_KEYS_MAX 1024
#define NK_KEYS_BYTES (64u * 1024u * 1024u)
#define NK_KEYS_KEEP_MS (10u * 60u * 1000u)

enum nk_key_claim {
    NK_KEY_NONE,   /* the request has no key */
    NK_KEY_FIRST,  /* claimed: bind or drop must follow */
    NK_KEY_REPEAT, /* `ready` will be called */
};

/* One request's part in a key; embedded by the handler. */
struct nk_key_use {
    struct nk_key *key; /* NULL: none */
    struct nk_list link;
    uint8_t digest[32]; /* of the body, once `digested` */
    bool digested;
    bool first; /* claimed the key */
    bool bound; /* its process was started */
    /* Of a repeat, once and never from within nk_keys_claim: the process that the first request
     * started (it may be in any state), or the error it ended with. */
    void (*ready)(struct nk_key_use *use, struct nk_process *p, const struct nk_err *err);
};

int nk_keys_open(uv_loop_t *loop, struct nk_keys **out);
void nk_keys_close(struct nk_keys **slot); /* lets go of all records; before the registry */

/* Looks at the Idempotency-Key of a request whose body has come. 0, or -1 with NK_CONFLICT or
 * NK_OVERLOADED. */
int nk_keys_claim(struct nk_keys *keys, struct nk_req *req, struct nk_key_use *use,
                  enum nk_key_claim *out, struct nk_err *err);

/* The same at the beginning of a body that is not kept: its fingerprint comes by nk_keys_digest. A
 * repeat is told only then, but of the first one's failure at once; a key whose first body broke off
 * is free again. */
int nk_keys_claim_early(struct nk_keys *keys, struct nk_req *req, struct nk_key_use *use,
                        enum nk_key_claim *out, struct nk_err *err);
void nk_keys_digest(struct nk_key_use *use, const uint8_t digest[32]);

/* Of the first request: the process was started (STARTING will do). Its failed start is noticed. */
void nk_keys_bind(struct nk_key_use *use, struct nk_process *p);
/* Nothing was started: the key is free again, and who waited gets `err`. */
void nk_keys_drop(struct nk_key_use *use, const struct nk_err *err);
/* The request is over; a repeat that has not been called yet will not be. A first one that neither
 * bound nor dropped its key drops it. */
void nk_keys_leave(struct nk_key_use *use);

#endif
