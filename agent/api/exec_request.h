/*
 * The request of a command, read: every field checked, nothing started.
 *
 * Strings lie in the request's arena, except standard input, which is allocated.
 */
#ifndef NK_API_EXEC_REQUEST_H
#define NK_API_EXEC_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "process/command.h"

struct nk_api_settings;
struct nk_arena;
struct nk_json;

enum nk_exec_kind {
    NK_EXEC_WHOLE,   /* one answer at the end */
    NK_EXEC_STREAM,  /* stdin may stay open */
    NK_EXEC_PROCESS, /* also name, terminal, log size */
    NK_EXEC_SESSION, /* the first message of a WebSocket: also terminal, binary output, code */
    NK_EXEC_CODE,    /* code in place of the command */
    NK_EXEC_CODE_STREAM,
    NK_EXEC_CONTEXT_NEW, /* no code: the interpreter of a context */
    NK_EXEC_CONTEXT,     /* code for a context, whose id is in the path */
    NK_EXEC_CONTEXT_STREAM,
    NK_EXEC_KINDS,
};

struct nk_exec_request {
    struct nk_command cmd; /* all but `user` and `owner`; of code without `argv` */
    uint8_t *stdin_data;   /* owned; NULL: none */
    const char *user;      /* borrowed: one of --allow-user, as spelled there; NULL: the default */
    bool detach;
    bool report_files;
    bool binary; /* output as binary messages */

    const char *code;        /* NULL: a command */
    const char *language;    /* NULL: the default */
    const char *const *args; /* of code; NULL-ended, or NULL */
    const char *context;     /* of code: the id of the context that runs it; NULL: none */
    bool queue;              /* it waits for its turn there */
};

/* From the object of the contract. 0, or -1 with what is wrong; fini is needed after 0 only. */
int nk_exec_request_read(const struct nk_json *object, enum nk_exec_kind kind,
                         const struct nk_api_settings *set, struct nk_arena *arena,
                         struct nk_exec_request *out, struct nk_err *err);
void nk_exec_request_fini(struct nk_exec_request *ask);

#endif
