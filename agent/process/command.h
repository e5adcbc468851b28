/*
 * What a client asked to run, in the terms of this room. A plain value, borrowed for the call of
 * nk_process_start, which copies what it keeps.
 */
#ifndef NK_PROCESS_COMMAND_H
#define NK_PROCESS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/spawn.h"
#include "process/userdb.h"

struct nk_host;  /* process/hosted.h */
struct nk_owner; /* process/registry.h */
struct nk_process;

/* What a higher room does between the end of a command and its announcement, and keeps with the
 * record. Embedded by that room's struct; all on the loop. */
struct nk_after {
    /* It was reaped and read. nk_process_announce must follow, once and not from within. */
    void (*ended)(struct nk_after *a, struct nk_process *p);
    void (*hurry)(struct nk_after *a); /* meanwhile: nobody waits for it any more */
    /* The results were told (or, with `all`, are to be forgotten): what need not stay may go. */
    void (*trim)(struct nk_after *a, bool all);
    void (*release)(struct nk_after *a); /* the record is gone, or nothing could be started */
    size_t bytes;                        /* of memory that is kept; counts as output */
};

struct nk_command {
    const char *const *argv; /* NULL-ended; with `shell`, {"/bin/sh", "-c", text, NULL} */
    bool shell;              /* was given as a string: shown as one */
    const char *name;        /* NULL: none */
    const char *cwd;
    const char *const *envp; /* complete, "K=V", NULL-ended */
    const struct nk_user *user;
    struct nk_owner *owner; /* borrowed; NULL: the sandbox's own */

    bool stdin_given;       /* else /dev/null (unless stdin_open) */
    bool stdin_open;        /* stays open for more input */
    const void *stdin_data; /* copied */
    size_t stdin_len;

    bool tty;
    unsigned cols, rows;

    uint64_t timeout_ms;    /* 0: none */
    size_t log_bytes;       /* of the ordered log */
    size_t max_output;      /* of each captured stream */
    bool capture;           /* keep whole results (plain exec) */
    struct nk_after *after; /* taken when nk_process_start gives 0; NULL: none */
    bool resident;          /* an interpreter that waits for code: no slot, on no list, its input
                               kept (process/hosted.h). Who starts it watches it */
    int channel;            /* taken likewise: becomes NK_SPAWN_CHANNEL; 0: none */
    struct nk_host *host;   /* what runs it, in place of a process of its own; NULL */
    struct nk_limits limits;
};

#endif
