/*
 * A session with a command over a WebSocket: standard input there, output back, the window's size,
 * and the command's exit status at the end.
 *
 * Behind exec -i and -t, sh and attach. Blocking; a terminal that was made raw is restored on every
 * way out.
 */
#ifndef NK_CLI_TALK_H
#define NK_CLI_TALK_H

#include <stdbool.h>

#include "base/buf.h"
#include "cli/target.h"

struct nk_talk {
    const struct nk_cli_env *env; /* borrowed, as all here: for the call */
    const char *socket;           /* of --socket, or NULL */
    const char *path;             /* of the WebSocket */
    const struct nk_buf *start;   /* the first message; NULL: the process is there already */
    bool input;                   /* pass standard input on */
    bool end_input;               /* and its end too */
    bool tty;                     /* the command has a terminal (else the server says it) */
    bool detach;                  /* print the id once it has started, and be done */
    char leave_key;               /* typed at a raw terminal, ends the session alone; 0: none */
};

/* The exit status: the command's, 126 or 127 where it could not be started, else NK_OUT_*. */
int nk_talk_run(const struct nk_talk *talk);

#endif
