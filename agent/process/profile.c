#include "process/profile.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"

#define ERRNO_MAX 4095 /* the kernel's */

#if defined(__x86_64__)
#define ARCH_NAME "amd64"
#elif defined(__aarch64__)
#define ARCH_NAME "arm64"
#else
#define ARCH_NAME ""
#endif

static const struct {
    const char *name;
    enum nk_profile_action action;
} actions[] = {
    {"SCMP_ACT_ALLOW", NK_PROFILE_ALLOW},       {"SCMP_ACT_ERRNO", NK_PROFILE_ERRNO},
    {"SCMP_ACT_KILL_PROCESS", NK_PROFILE_KILL}, {"SCMP_ACT_KILL_THREAD", NK_PROFILE_KILL_THREAD},
    {"SCMP_ACT_KILL", NK_PROFILE_KILL_THREAD},  {"SCMP_ACT_TRAP", NK_PROFILE_TRAP},
    {"SCMP_ACT_LOG", NK_PROFILE_LOG},
};

static const char *const ops[] = {
    [NK_PROFILE_NE] = "SCMP_CMP_NE",
    [NK_PROFILE_LT] = "SCMP_CMP_LT",
    [NK_PROFILE_LE] = "SCMP_CMP_LE",
    [NK_PROFILE_EQ] = "SCMP_CMP_EQ",
    [NK_PROFILE_GE] = "SCMP_CMP_GE",
    [NK_PROFILE_GT] = "SCMP_CMP_GT",
    [NK_PROFILE_MASKED_EQ] = "SCMP_CMP_MASKED_EQ",
};

static int read_verdict(const struct nk_json *o, const char *key, const char *error_key,
                        struct nk_profile_verdict *out, struct nk_err *err)
{
    const char *word = NULL;
    uint64_t error = EPERM;

    if (nk_json_read_str(o, key, &word, err) < 0 ||
        nk_json_read_u64(o, error_key, 0, ERRNO_MAX, &error, err) < 0)
        return -1;
    for (size_t i = 0; word && i < NK_COUNT(actions); i++) {
        if (strcmp(word, actions[i].name) != 0)
            continue;
        *out = (struct nk_profile_verdict){actions[i].action, (unsigned short)error};
        return 0;
    }
    return nk_fail(err, NK_BAD_REQUEST, "%s cannot be %.80s", key, word ? word : "left out");
}

static int read_arg(const struct nk_json *o, struct nk_profile_arg *out, struct nk_err *err)
{
    struct nk_profile_arg arg = {.index = NK_PROFILE_ARGS};
    uint64_t index = NK_PROFILE_ARGS;
    const char *op = NULL;

    if (nk_json_read_u64(o, "index", 0, NK_PROFILE_ARGS - 1, &index, err) < 0 ||
        nk_json_read_u64(o, "value", 0, UINT64_MAX, &arg.value, err) < 0 ||
        nk_json_read_u64(o, "valueTwo", 0, UINT64_MAX, &arg.value_two, err) < 0 ||
        nk_json_read_str(o, "op", &op, err) < 0)
        return -1;
    arg.index = (unsigned)index;
    for (size_t i = 0; op && i < NK_COUNT(ops) && index < NK_PROFILE_ARGS; i++) {
        if (strcmp(op, ops[i]) != 0)
            continue;
        arg.op = (enum nk_profile_op)i;
        *out = arg;
        return 0;
    }
    return nk_fail(err, NK_BAD_REQUEST, "an argument needs an index and an op, not %.80s",
                   op ? op : "none");
}

/* The members of a list that need not be there. */
static const struct nk_json *first_of(const struct nk_json *o, const char *key)
{
    const struct nk_json *list = o ? nk_json_get(o, key) : NULL;

    return list ? nk_json_first(list) : NULL;
}

static int read_args(const struct nk_json *entry, struct nk_profile_rule *rule, struct nk_err *err)
{
    for (const struct nk_json *a = first_of(entry, "args"); a; a = nk_json_next(a)) {
        if (rule->arg_count == NK_PROFILE_ARGS)
            return nk_fail(err, NK_BAD_REQUEST, "more than %d arguments", NK_PROFILE_ARGS);
        if (read_arg(a, &rule->arg[rule->arg_count], err) < 0)
            return -1;
        rule->arg_count++;
    }
    return 0;
}

static bool lists(const struct nk_json *o, const char *key, const char *word)
{
    for (const struct nk_json *v = first_of(o, key); v; v = nk_json_next(v))
        if (nk_json_str(v) && strcmp(nk_json_str(v), word) == 0)
            return true;
    return false;
}

/* As on this machine, for a process without capabilities. */
static bool holds_here(const struct nk_json *entry)
{
    const struct nk_json *includes = nk_json_get(entry, "includes");
    const struct nk_json *excludes = nk_json_get(entry, "excludes");

    if (first_of(includes, "caps") ||
        (first_of(includes, "arches") && !lists(includes, "arches", ARCH_NAME)))
        return false;
    return !lists(excludes, "arches", ARCH_NAME);
}

static int read_entry(const struct nk_json *entry, const struct nk_profile_reader *reader,
                      struct nk_err *err)
{
    struct nk_profile_rule rule = {.name = NULL};

    if (!holds_here(entry))
        return 0;
    if (read_verdict(entry, "action", "errnoRet", &rule.verdict, err) < 0 ||
        read_args(entry, &rule, err) < 0)
        return -1;
    for (const struct nk_json *n = first_of(entry, "names"); n; n = nk_json_next(n)) {
        rule.name = nk_json_str(n);
        if (!rule.name)
            return nk_fail(err, NK_BAD_REQUEST, "names must be strings");
        if (reader->rule(&rule, reader->ctx, err) < 0)
            return -1;
    }
    return rule.name ? 0 : nk_fail(err, NK_BAD_REQUEST, "an entry of syscalls without names");
}

static int read_root(const struct nk_json *root, const struct nk_profile_reader *reader,
                     struct nk_err *err)
{
    struct nk_profile_verdict otherwise;

    if (read_verdict(root, "defaultAction", "defaultErrnoRet", &otherwise, err) < 0 ||
        reader->begin(&otherwise, reader->ctx, err) < 0)
        return -1;
    for (const struct nk_json *e = first_of(root, "syscalls"); e; e = nk_json_next(e))
        if (read_entry(e, reader, err) < 0)
            return -1;
    return 0;
}

int nk_profile_read(const char *text, size_t len, const struct nk_profile_reader *reader,
                    struct nk_err *err)
{
    struct nk_json *root = NULL;
    int rc = nk_json_parse(text, len, &root, err);

    if (rc == 0)
        rc = read_root(root, reader, err);
    nk_json_free(root);
    return rc;
}
