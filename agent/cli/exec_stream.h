/*
 * A command over POST /v1/exec/stream, or code: the request is given whole, the output comes as
 * events.
 *
 * One way of running a command; who builds the request need not know which way is taken.
 */
#ifndef NK_CLI_EXEC_STREAM_H
#define NK_CLI_EXEC_STREAM_H

#include <stdbool.h>

#include "base/buf.h"
#include "cli/target.h"

struct nk_json;

struct nk_exec_stream {
    const struct nk_cli_env *env; /* borrowed, as all here: for the call */
    const char *socket;           /* of --socket, or NULL */
    const struct nk_buf *request; /* the JSON body */
    bool detach;                  /* print the id once it has started, and be done */
    const char *path;             /* of another route whose stream is like that; NULL: none */
    /* What to do with the closing event: 0, or an exit status. NULL: nothing. */
    int (*closing)(const void *ctx, const struct nk_json *result);
    const void *ctx; /* borrowed */
};

/* The exit status: the command's, 126 or 127 where it could not be started, else NK_OUT_*. */
int nk_exec_stream_run(const struct nk_exec_stream *s);

#endif
