/*
 * Options: one table of flag, variable, default, bounds and help; order flag, variable, file, default.
 *
 * Only main and app include this; rooms get values. Read once at start, in one thread. Owns all
 * strings. Also the home of named deadlines and limits that no option changes.
 */
#ifndef NK_CONFIG_H
#define NK_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define NK_HEADER_MAX (16u * 1024u)
#define NK_HEADER_LINES_MAX 100
#define NK_URL_MAX (8u * 1024u)
#define NK_CHUNK_LINE_MAX 256
#define NK_CONNS_MAX 10240
#define NK_CONNS_RESERVED 2
#define NK_HEADER_MS 10000
#define NK_IDLE_MS 120000
#define NK_BODY_GRACE_MS 10000
#define NK_BODY_MIN_RATE 1024
#define NK_WRITE_STALL_MS 30000
#define NK_LOCAL_STALL_MS 86400000

struct nk_strings { /* a repeatable option */
    char **item;    /* owned, NULL-ended */
    size_t count;
};

struct nk_config {
    char *socket; /* NULL: none */
    struct nk_strings listen;
    uint64_t vsock; /* 0: none */
    char *token_file;
    int token_fd; /* -1: none */
    bool no_auth;
    struct nk_strings allow_origin, allow_host, allow_user;
    char *user, *program_user; /* NULL: the default rule */
    char *id;
    struct nk_strings writable, readable;
    char *output_dir;
    bool identities;
    uint64_t uid_first, uid_last;
    char *state_dir;
    uint64_t quota_bytes, quota_files, max_commands, max_processes, max_contexts;
    uint64_t mark_first, mark_last;
    uint64_t timeout_ms, max_timeout_ms, ttl_ms, max_ttl_ms, idle_timeout_ms,
        grace_ms; /* 0: none */
    char *runtime, *runtimes;
    uint64_t max_output, log_bytes, log_total, max_body, max_upload, max_outputs;
    char *network;
    bool network_outside;
    struct nk_strings env, pass_env;
    char *seccomp; /* "default", "off" or a file */
    uint64_t nproc, nofile, fsize, memory;
    uint32_t without; /* 1 << enum nk_mech; the option's choices are in that order */
    bool signals_child;
    struct nk_strings map_signal;
    bool main_exit_leave;
    int parent_death; /* signal number, 0: none */
    struct nk_strings pass_fd;
    int log_level;           /* enum nk_log_level */
    int log_json;            /* -1: by whether standard error is a terminal */
    char **program;          /* borrowed: the tail of argv, NULL-ended; NULL: none */
    char *token;             /* owned; from the variable, which is wiped */
    bool token_given;        /* by file, descriptor or variable; else one is made at token_file */
    const char *config_file; /* borrowed: an argument or a variable; NULL: none */
};

/* argv[0] is the first option (after the verb). 0, or -1 with err: one line that names it. */
int nk_config_load(int argc, char **argv, struct nk_config *out, struct nk_err *err);
void nk_config_fini(struct nk_config *c);

/* The only reader of the environment; NULL where absent. */
const char *nk_config_env(const char *name);

void nk_config_print_help(void);
int nk_config_print_json(const struct nk_config *c); /* --print-config */

#endif
