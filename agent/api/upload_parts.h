/*
 * A multipart body whose file parts become files, one after the other: each is an upload of its own,
 * whole or not at all, and the body waits while one is being finished.
 *
 * Embedded by the handler's state. Loop thread only.
 */
#ifndef NK_API_UPLOAD_PARTS_H
#define NK_API_UPLOAD_PARTS_H

#include <stdbool.h>

#include "api/file_call.h"
#include "base/buf.h"
#include "base/json_out.h"
#include "files/upload.h"
#include "http/multipart.h"

struct nk_parts;

struct nk_parts_events {
    /* A part begins. 1: it is a field, whose bytes go to on_field_data; 0: it is a file; -1 with err:
     * it is refused. NULL: every part must be a file. */
    int (*on_part)(struct nk_parts *p, struct nk_err *err);
    /* 0; 1: taken, but give no more until nk_parts_resume; -1 with err. */
    int (*on_field_data)(struct nk_parts *p, const void *data, size_t len, struct nk_err *err);
    int (*on_field_end)(struct nk_parts *p, struct nk_err *err);
    /* The last boundary was read and all files are there; or err. Once. */
    void (*on_over)(struct nk_parts *p, const struct nk_err *err);
};

struct nk_parts {
    struct nk_req *req;                   /* borrowed: until nk_parts_fini */
    const struct nk_parts_events *events; /* static */
    struct nk_file_scope scope;
    struct nk_multipart parser;
    const char *dir; /* borrowed: where the files go; outlives the parts */
    size_t dir_len;
    struct nk_upload *upload; /* owned: of the part that is read */
    struct nk_quota_ask ask;
    struct nk_holder holder; /* of the same part */
    bool judged;             /* there is room for one more file, if it is one */
    struct nk_buf held;      /* owned: what was given while nothing could be taken */
    struct nk_buf files; /* owned: entries of the files that are there, in a JSON array's form */
    struct nk_json_out out;
    bool in_field;
    bool waiting;  /* for an upload, or for the taker of a field */
    bool complete; /* the last boundary was seen */
    bool ended;    /* the body is at its end */
    bool over;
};

/* The owner gives the body to nk_parts_data and nk_parts_end. fini is needed after 0 only. */
int nk_parts_init(struct nk_parts *p, struct nk_req *req, const struct nk_parts_events *events,
                  const char *dir, struct nk_err *err);
void nk_parts_data(struct nk_parts *p, const void *data, size_t len);
void nk_parts_end(struct nk_parts *p);
void nk_parts_resume(struct nk_parts *p); /* what on_field_data held back may go on */
void nk_parts_fini(struct nk_parts *p);

#endif
