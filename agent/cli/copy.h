/*
 * One copy between here and the sandbox: what both directions share.
 *
 * Folders go as tar streams, packed and unpacked here by the same code as in the daemon's worker;
 * files go as they are. Owned by the verb `cp`; blocking, one thread.
 */
#ifndef NK_CLI_COPY_H
#define NK_CLI_COPY_H

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "cli/progress.h"
#include "cli/target.h"
#include "http/client.h"

#define NK_COPY_TIMEOUT_MS 180000 /* to the first byte of an answer: a daemon may have much to do */
#define NK_COPY_PIECE (256u * 1024u)
#define NK_COPY_REFUSED 1 /* exit status: some entries were not copied */

struct nk_copy {
    const struct nk_cli_env *env; /* borrowed */
    const char *socket;           /* of --socket, or NULL */
    const char *local;            /* a path here; "-": standard input or output */
    const char *remote;           /* a path there, without its colon; never empty */
    struct nk_progress progress;
};

enum nk_copy_kind { NK_COPY_MISSING, NK_COPY_FILE, NK_COPY_DIR };

struct nk_copy_found {
    enum nk_copy_kind kind;
    unsigned mode; /* permission bits of a file */
};

/* The exit status. */
int nk_copy_up(struct nk_copy *c);
int nk_copy_down(struct nk_copy *c);

/* What lies at a path there; a link counts as what it leads to. */
int nk_copy_look(const struct nk_copy *c, const char *path, struct nk_copy_found *out,
                 struct nk_err *err);

/* Sends the head of a request whose target is `route` with `path`, and `more` behind it. */
struct nk_copy_call {
    const char *method;
    const char *route; /* "/v1/files?path=" */
    const char *path;
    const char *more; /* "&mode=0644", or "" */
    bool body;        /* a chunked body follows */
};
int nk_copy_open(const struct nk_copy *c, const struct nk_copy_call *call, struct nk_client **out,
                 struct nk_err *err);
/* Reads the head of the answer; any but 2xx is an error. */
int nk_copy_answer(struct nk_client *client, struct nk_err *err);
/* And then its JSON. */
int nk_copy_read(struct nk_client *client, struct nk_json **out, struct nk_err *err);

/* The last part of a path, without slashes at its end; "" where it has none (".", "..", "/"). */
void nk_copy_name(const char *path, char out[256]);
/* `dir`/`name`, or `dir` where the name is empty. -1 where it does not fit. */
int nk_copy_join(char *out, size_t room, const char *dir, const char *name);

#endif
