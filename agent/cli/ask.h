/*
 * One request of a verb: connect, ask, understand the answer or the error in it.
 *
 * Blocking; one thread. Never prints.
 */
#ifndef NK_CLI_ASK_H
#define NK_CLI_ASK_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/target.h"

#define NK_ASK_TIMEOUT_MS 30000
#define NK_ASK_BODY_MAX (32u * 1024u * 1024u)

/* An error answer of the API. Strings are cut to their room, empty where absent. */
struct nk_ask_problem {
    int status;
    char code[48];
    char message[256];
    char errno_name[16]; /* of exec_failed */
    char stage[16];
};

/* `timeout_ms` to connect and to the first byte of the answer; 0: none. */
int nk_ask_open(const struct nk_cli_env *env, const char *socket, unsigned timeout_ms,
                struct nk_client **out, struct nk_err *err);

/* Reads the rest of an answer that is not 2xx. Fails only on transport. */
int nk_ask_problem(struct nk_client *c, int status, struct nk_ask_problem *out, struct nk_err *err);
int nk_ask_refused(const struct nk_ask_problem *p, struct nk_err *err); /* as an error: -1 */
/* Tells a refused start on standard error. The exit status as of a shell: 126 found but not to be
 * run, 127 not there; a step before the program itself is our failure. */
int nk_ask_tell(const struct nk_ask_problem *p);
/* The members of an error object; what is not there stays empty. */
void nk_ask_read_problem(const struct nk_json *error, struct nk_ask_problem *out);

/* A whole call on a connection of its own; any answer but 2xx is an error. `body` may be NULL, and
 * `out` too; *out is NULL where the answer has no body. */
int nk_ask_json(struct nk_client *c, const char *method, const char *path,
                const struct nk_buf *body, struct nk_json **out, struct nk_err *err);

/* A string member of an answer, or `fallback`. Borrowed from `object`. */
const char *nk_ask_text(const struct nk_json *object, const char *key, const char *fallback);

void nk_ask_escape(struct nk_buf *out, const char *s); /* percent-encoded path segment */

#endif
