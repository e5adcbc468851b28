/*
 * A seccomp profile as container runtimes write it (JSON), read into rules.
 *
 * What it says under conditions on capabilities holds as for a process that has none, which is what
 * commands are. Pure; owns nothing.
 */
#ifndef NK_PROCESS_PROFILE_H
#define NK_PROCESS_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define NK_PROFILE_ARGS 6

enum nk_profile_action {
    NK_PROFILE_ALLOW,
    NK_PROFILE_ERRNO,
    NK_PROFILE_KILL, /* the process */
    NK_PROFILE_KILL_THREAD,
    NK_PROFILE_TRAP,
    NK_PROFILE_LOG,
};

enum nk_profile_op { /* in the order of libseccomp's */
                     NK_PROFILE_NE,
                     NK_PROFILE_LT,
                     NK_PROFILE_LE,
                     NK_PROFILE_EQ,
                     NK_PROFILE_GE,
                     NK_PROFILE_GT,
                     NK_PROFILE_MASKED_EQ,
};

struct nk_profile_verdict {
    enum nk_profile_action action;
    unsigned short error; /* of ERRNO */
};

struct nk_profile_arg {
    unsigned index;
    enum nk_profile_op op;
    uint64_t value, value_two;
};

struct nk_profile_rule {
    const char *name; /* of the call */
    struct nk_profile_verdict verdict;
    struct nk_profile_arg arg[NK_PROFILE_ARGS];
    unsigned arg_count; /* all must hold */
};

/* The verdict on all other calls first, then `fn` for every rule, until it fails. */
struct nk_profile_reader {
    int (*begin)(const struct nk_profile_verdict *otherwise, void *ctx, struct nk_err *err);
    int (*rule)(const struct nk_profile_rule *rule, void *ctx, struct nk_err *err);
    void *ctx;
};

int nk_profile_read(const char *text, size_t len, const struct nk_profile_reader *reader,
                    struct nk_err *err);

#endif
