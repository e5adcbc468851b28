#include "cli/cmd_info.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/cmd_call.h"
#include "cli/out.h"
#include "cli/verbs.h"

const char nk_cmd_info_help[] =
    "usage: nookd info [--json] [--socket PATH]\n"
    "\n"
    "Tells what the sandbox is and does, the languages it has, and what its kernel lacks.\n"
    "\n"
    "  --json         the sandbox's state as the API gives it (GET /v1/sandbox)\n"
    "  --socket PATH  the daemon's socket\n";

static void add_name(struct nk_buf *out, const char *name)
{
    nk_buf_add_fmt(out, "%-10s ", name);
}

static void add_text(struct nk_buf *out, const char *name, const struct nk_json *object,
                     const char *key, const char *fallback)
{
    add_name(out, name);
    nk_out_plain(out, nk_ask_text(object, key, fallback));
    nk_buf_add_char(out, '\n');
}

static unsigned long count_of(const struct nk_json *counts, const char *key)
{
    const struct nk_json *n = counts ? nk_json_get(counts, key) : NULL;

    return n ? (unsigned long)nk_json_num(n) : 0;
}

static void add_sandbox(struct nk_buf *out, const struct nk_json *sandbox)
{
    const struct nk_json *counts = nk_json_get(sandbox, "counts");

    add_text(out, "id", sandbox, "id", "?");
    add_text(out, "status", sandbox, "status", "?");
    add_text(out, "created", sandbox, "created_at", "?");
    add_text(out, "expires", sandbox, "expires_at", "never");
    add_text(out, "runtime", sandbox, "runtime", "none");
    add_name(out, "commands");
    nk_buf_add_fmt(out, "%lu running, %lu ended, %lu started\n", count_of(counts, "running"),
                   count_of(counts, "ended"), count_of(counts, "started"));
}

/* The members of `set` that are there, or those that are not, in one line. */
static void add_members(struct nk_buf *out, const char *name, const struct nk_json *set,
                        bool available)
{
    size_t shown = 0;

    add_name(out, name);
    for (const struct nk_json *m = set ? nk_json_first(set) : NULL; m; m = nk_json_next(m)) {
        const struct nk_json *there = nk_json_get(m, "available");
        const char *version = nk_ask_text(m, "version", "");

        if (!there || nk_json_true(there) != available)
            continue;
        nk_buf_add_str(out, shown++ > 0 ? ", " : "");
        nk_out_plain(out, nk_json_key(m));
        nk_buf_add_str(out, *version != '\0' ? " " : "");
        nk_out_plain(out, version);
    }
    nk_buf_add_str(out, shown > 0 ? "\n" : "none\n");
}

static int print_table(const struct nk_json *sandbox, const struct nk_json *capabilities)
{
    struct nk_buf out = {0};
    int status;

    add_sandbox(&out, sandbox);
    add_text(&out, "nookd", capabilities, "version", "?");
    add_members(&out, "languages", nk_json_get(capabilities, "languages"), true);
    add_members(&out, "lacking", nk_json_get(capabilities, "isolation"), false);
    status = nk_out_buf(&out);
    nk_buf_fini(&out);
    return status;
}

static int ask(const struct nk_cli_env *env, const char *socket, const char *path,
               struct nk_json **out, struct nk_err *err)
{
    struct nk_client *c = NULL;
    int rc;

    if (nk_ask_open(env, socket, NK_ASK_TIMEOUT_MS, &c, err) < 0)
        return -1;
    rc = nk_ask_json(c, "GET", path, NULL, out, err);
    nk_client_free(c);
    if (rc == 0 && (!*out || nk_json_type(*out) != NK_JSON_OBJECT))
        rc = nk_fail(err, NK_INTERNAL, "the server's answer is not an object");
    return rc;
}

static int tell(const struct nk_cli_env *env, const char *socket)
{
    struct nk_json *sandbox = NULL;
    struct nk_json *capabilities = NULL;
    struct nk_err err;
    int status;

    if (ask(env, socket, "/v1/sandbox", &sandbox, &err) < 0 ||
        ask(env, socket, "/v1/capabilities", &capabilities, &err) < 0)
        status = nk_out_fail(&err);
    else
        status = print_table(sandbox, capabilities);
    nk_json_free(sandbox);
    nk_json_free(capabilities);
    return status;
}

static int tell_json(const struct nk_cli_env *env, const char *socket)
{
    char get[] = "GET";
    char path[] = "/v1/sandbox";
    char option[] = "--socket";
    char *call[] = {get, path, socket ? option : NULL, (char *)(uintptr_t)socket, NULL};

    return nk_cmd_call(call, env);
}

int nk_cmd_info(char **argv, const struct nk_cli_env *env)
{
    const char *socket = NULL;
    bool json = false;
    const struct nk_args_opt table[] = {
        {"--json", 0, NK_ARGS_FLAG, &json},
        {"--socket", 0, NK_ARGS_TEXT, &socket},
    };
    struct nk_args args = {.opts = table, .count = NK_COUNT(table)};
    int status = nk_args_begin(&args, argv);

    if (status != 0)
        return status;
    if (args.operand_count > 0)
        return nk_out_fail_msg("info takes no operands");
    return json ? tell_json(env, socket) : tell(env, socket);
}
