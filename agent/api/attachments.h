/*
 * A command whose request is a multipart body: first the part `request`, then files, which are
 * written to files/ before the command starts, last perhaps a part `stdin`, which is streamed to it.
 *
 * Embedded by the handler's state beside its starter. The body waits while the program does not read.
 * Loop thread only.
 */
#ifndef NK_API_ATTACHMENTS_H
#define NK_API_ATTACHMENTS_H

#include <stdbool.h>

#include "api/upload_parts.h"
#include "base/secret.h"
#include "process/watcher.h"

struct nk_json;
struct nk_starter;

struct nk_attachments {
    struct nk_parts parts;
    struct nk_starter *starter; /* borrowed: the owner's */
    struct nk_watcher watcher;  /* hears when the program has read */
    struct nk_buf text;         /* owned: of the part `request` */
    struct nk_json *object;     /* owned */
    struct nk_buf input;        /* owned: bytes that the program has not taken */
    struct nk_sha256 hash;      /* of the body, where it has a key */
    bool keyed;
    bool used;       /* the request is a multipart one */
    bool in_request; /* that part is being read */
    bool started;    /* the command was, or its start is on its way */
    bool closing;    /* the part `stdin` is complete */
    bool deaf;       /* the program reads no more */
};

/* The starter is set up, but has not run; the request has no JSON body. The command is started as
 * nk_starter_run_late does, its key is honoured; what goes wrong before is answered. 0, or -1 with
 * err. */
int nk_attachments_begin(struct nk_attachments *a, struct nk_starter *starter, struct nk_req *req,
                         struct nk_err *err);
/* The starter's `done` was called without an error: the process is there. */
void nk_attachments_started(struct nk_attachments *a);
void nk_attachments_fini(struct nk_attachments *a); /* a zeroed one is fine */

#endif
