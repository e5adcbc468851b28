#include "cli/args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/out.h"
#include "cli/verbs.h"

static const struct nk_args_opt *find_name(const struct nk_args *args, const char *name, size_t len)
{
    for (size_t i = 0; i < args->count; i++) {
        if (strlen(args->opts[i].name) == len && memcmp(args->opts[i].name, name, len) == 0)
            return &args->opts[i];
    }
    return NULL;
}

static const struct nk_args_opt *find_letter(const struct nk_args *args, char letter)
{
    for (size_t i = 0; i < args->count; i++) {
        if (args->opts[i].letter == letter)
            return &args->opts[i];
    }
    return NULL;
}

static int add_item(struct nk_args_list *list, const char *value, struct nk_err *err)
{
    const char **item = reallocarray(list->item, list->count + 1, sizeof *item);

    if (!item)
        return nk_fail_sys(err, ENOMEM, "cannot keep an option");
    list->item = item;
    item[list->count++] = value;
    return 0;
}

/* `value` is NULL where the option carries none itself; then the next argument is it. */
static int set(const struct nk_args_opt *opt, const char *value, char ***argv, struct nk_err *err)
{
    if (opt->kind == NK_ARGS_FLAG) {
        if (value)
            return nk_fail(err, NK_BAD_REQUEST, "%s takes no value", opt->name);
        *(bool *)opt->slot = true;
        return 0;
    }
    if (!value) {
        value = **argv;
        if (!value)
            return nk_fail(err, NK_BAD_REQUEST, "%s needs a value", opt->name);
        (*argv)++;
    }
    if (opt->kind == NK_ARGS_LIST)
        return add_item(opt->slot, value, err);
    *(const char **)opt->slot = value;
    return 0;
}

static int unknown(struct nk_err *err, const char *arg)
{
    return nk_fail(err, NK_BAD_REQUEST, "unknown option %s (--help shows the known ones)", arg);
}

static int read_long(struct nk_args *args, char ***argv, struct nk_err *err)
{
    const char *arg = *(*argv)++;
    size_t len = strcspn(arg, "=");
    const struct nk_args_opt *opt = find_name(args, arg, len);

    if (strcmp(arg, "--help") == 0)
        return 1;
    if (!opt)
        return unknown(err, arg);
    return set(opt, arg[len] == '=' ? arg + len + 1 : NULL, argv, err);
}

static int read_letters(struct nk_args *args, char ***argv, struct nk_err *err)
{
    const char *arg = *(*argv)++;

    for (const char *p = arg + 1; *p != '\0'; p++) {
        const struct nk_args_opt *opt = find_letter(args, *p);

        if (!opt)
            return *p == 'h' ? 1 : unknown(err, arg);
        if (opt->kind != NK_ARGS_FLAG)
            return set(opt, p[1] != '\0' ? p + 1 : NULL, argv, err);
        if (set(opt, NULL, argv, err) < 0)
            return -1;
    }
    return 0;
}

static void take_rest(struct nk_args *args, char **argv)
{
    while (*argv)
        args->operand[args->operand_count++] = *argv++;
    args->operand[args->operand_count] = NULL;
}

int nk_args_read(struct nk_args *args, char **argv, struct nk_err *err)
{
    args->operand = argv;
    args->operand_count = 0;
    while (*argv) {
        const char *arg = *argv;
        int rc = 0;

        if (strcmp(arg, "--") == 0) {
            argv++;
            break;
        }
        if (arg[0] != '-' || arg[1] == '\0') {
            if (args->command)
                break;
            args->operand[args->operand_count++] = *argv++;
        } else if (arg[1] == '-') {
            rc = read_long(args, &argv, err);
        } else {
            rc = read_letters(args, &argv, err);
        }
        if (rc != 0)
            return rc;
    }
    take_rest(args, argv);
    return 0;
}

void nk_args_list_fini(struct nk_args_list *list)
{
    free(list->item);
    *list = (struct nk_args_list){0};
}

int nk_args_begin(struct nk_args *args, char **argv)
{
    struct nk_err err;
    int rc = nk_args_read(args, argv, &err);

    if (rc > 0)
        return NK_VERBS_HELP;
    return rc < 0 ? nk_out_fail(&err) : 0;
}

int nk_args_each(const struct nk_args *args, int (*one)(const void *ctx, const char *operand),
                 const void *ctx)
{
    int status = 0;

    for (size_t i = 0; i < args->operand_count; i++) {
        int rc = one(ctx, args->operand[i]);

        status = rc ? rc : status;
    }
    return status;
}
