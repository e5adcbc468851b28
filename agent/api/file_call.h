/*
 * A request that is one operation on files (files/op.h): started from a handler, answered when it is
 * over, stopped when the client goes.
 *
 * Owned by itself: gone when both the request and the operation are over. Loop thread only.
 */
#ifndef NK_API_FILE_CALL_H
#define NK_API_FILE_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "files/op.h"
#include "tenant/quota.h"

struct nk_json;
struct nk_req;

/* Whose files a request sees, and with whose rights. */
struct nk_file_scope {
    struct nk_jobs *jobs;         /* borrowed: outlives every request */
    const struct nk_roots *roots; /* borrowed: likewise */
    const struct nk_creds *as;    /* borrowed: likewise */
    const void *share;
    struct nk_quota *quota; /* borrowed: likewise */
};

struct nk_file_scope nk_file_call_scope(const struct nk_req *req);

/* A query parameter that is a path; empty or missing: `fallback`, or NK_BAD_PATH where that is
 * NULL. Borrowed from the request. */
int nk_file_call_path(const struct nk_req *req, const char *name, const char *fallback,
                      const char **out, size_t *out_len, struct nk_err *err);
/* Three or four octal digits; permission bits only. NULL leaves *out as it is. */
int nk_file_call_mode(const char *text, mode_t *out, struct nk_err *err);

struct nk_file_call {
    struct nk_op op;
    struct nk_req *req; /* borrowed: NULL once it is over */
    void (*answer)(struct nk_req *req, struct nk_op *op);
    struct nk_quota_ask ask;
    struct nk_quota *quota; /* borrowed: what it changes; NULL: nothing */
};

/* To be filled, then started or freed. NULL with err: no memory. */
struct nk_file_call *nk_file_call_new(struct nk_req *req, struct nk_err *err);
int nk_file_call_set_path(struct nk_file_call *call, const char *path, size_t len,
                          struct nk_err *err);
/* `path` and, where `to` is wanted, `to`; as text or base64. */
int nk_file_call_read(struct nk_file_call *call, const struct nk_json *object, bool to,
                      struct nk_err *err);
void nk_file_call_start(struct nk_file_call *call, int (*slice)(struct nk_task *t),
                        void (*answer)(struct nk_req *req, struct nk_op *op));
/* The same for what may add to what is kept: first that is known, and there must be room for a file. */
void nk_file_call_start_bound(struct nk_file_call *call, int (*slice)(struct nk_task *t),
                              void (*answer)(struct nk_req *req, struct nk_op *op));
void nk_file_call_free(struct nk_file_call *call); /* only one that was not started */

#endif
