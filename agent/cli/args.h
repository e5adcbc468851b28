/*
 * The options of a verb: a table in, values in the caller's variables out.
 *
 * `--name VALUE`, `--name=VALUE`, `-x VALUE`, `-xVALUE`, `-ab`, and `--` for the end of options.
 * Values are borrowed from argv. No state of its own.
 */
#ifndef NK_CLI_ARGS_H
#define NK_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum nk_args_kind {
    NK_ARGS_FLAG, /* bool */
    NK_ARGS_TEXT, /* const char *; the last one given counts */
    NK_ARGS_LIST, /* struct nk_args_list */
};

struct nk_args_list {
    const char **item; /* owned; the strings are borrowed */
    size_t count;
};

struct nk_args_opt {
    const char *name; /* "--cwd" */
    char letter;      /* 0: none */
    enum nk_args_kind kind;
    void *slot;
};

struct nk_args {
    const struct nk_args_opt *opts;
    size_t count;
    bool command; /* the first operand ends the options, the rest is a command's own */
    char **operand;
    size_t operand_count;
};

/* `argv` is NULL-ended, begins behind the verb and is reordered: operands are `args->operand`.
 * 0; 1 when --help or -h was asked for; -1 with err. */
int nk_args_read(struct nk_args *args, char **argv, struct nk_err *err);
void nk_args_list_fini(struct nk_args_list *list);

/* The beginning of every verb: 0, or the status to end with: help is wanted, or what is wrong was
 * told. */
int nk_args_begin(struct nk_args *args, char **argv);
/* Each operand, also after one that failed: the last failure's status, or 0. */
int nk_args_each(const struct nk_args *args, int (*one)(const void *ctx, const char *operand),
                 const void *ctx);

#endif
