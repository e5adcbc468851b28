#include "cli/cmd_ls.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"

const char nk_cmd_ls_help[] =
    "usage: nookd ls [-l] [-R] [--socket PATH] [PATH]\n"
    "\n"
    "Lists a folder of the sandbox (the working directory), or one file, in byte order.\n"
    "\n"
    "  -l, --long       mode, owner, size and time too\n"
    "  -R, --recursive  all below it, as paths\n"
    "  --socket PATH    the daemon's socket\n";

struct listing {
    const struct nk_cli_env *env;
    const char *socket;
    const char *path;
    bool wide;
    bool recursive;
    bool terminal; /* names are shown, not handed on: nothing in them may act */
};

/* The exact bytes where the text is not them. */
static void add_exact(struct nk_buf *out, const char *text, const char *base64)
{
    size_t len = strlen(base64);
    uint8_t *room = nk_buf_reserve(out, len / 4 * 3 + 1);
    size_t got = 0;

    if (room && nk_base64_decode(base64, len, room, &got) == 0)
        nk_buf_commit(out, got);
    else
        nk_buf_add_str(out, text);
}

static void add_text(struct nk_buf *out, const struct listing *l, const struct nk_json *entry,
                     const char *key, const char *exact_key)
{
    const char *text = nk_ask_text(entry, key, "");
    const char *exact = nk_ask_text(entry, exact_key, "");

    if (l->terminal)
        nk_out_plain(out, text);
    else if (*exact != '\0')
        add_exact(out, text, exact);
    else
        nk_buf_add_str(out, text);
}

static void add_details(struct nk_buf *out, const struct nk_json *entry)
{
    const struct nk_json *size = nk_json_get(entry, "size");

    nk_buf_add_fmt(out, "%-7s %s  ", nk_ask_text(entry, "type", ""),
                   nk_ask_text(entry, "mode", ""));
    nk_out_plain(out, nk_ask_text(entry, "owner", ""));
    nk_buf_add_char(out, ':');
    nk_out_plain(out, nk_ask_text(entry, "group", ""));
    nk_buf_add_fmt(out, "  %12.0f  %s  ", size ? nk_json_num(size) : 0,
                   nk_ask_text(entry, "mtime", ""));
}

static void add_entry(struct nk_buf *out, const struct listing *l, const struct nk_json *entry)
{
    if (l->wide)
        add_details(out, entry);
    if (l->recursive)
        add_text(out, l, entry, "path", "path_base64");
    else
        add_text(out, l, entry, "name", "name_base64");
    if (l->wide && nk_json_get(entry, "target")) {
        nk_buf_add_str(out, " -> ");
        add_text(out, l, entry, "target", "target_base64");
    }
    nk_buf_add_char(out, '\n');
}

static int ask(const struct listing *l, const char *call, const char *cursor, struct nk_json **out,
               struct nk_err *err)
{
    struct nk_buf target = {0};
    struct nk_client *c = NULL;
    int rc = -1;

    nk_buf_add_fmt(&target, "/v1/files/%s?path=", call);
    nk_ask_escape(&target, l->path);
    if (cursor)
        nk_buf_add_fmt(&target, "&limit=5000%s", l->recursive ? "&recursive=true" : "");
    if (cursor && *cursor != '\0') {
        nk_buf_add_str(&target, "&cursor=");
        nk_ask_escape(&target, cursor);
    }
    nk_buf_add_char(&target, '\0');
    if (target.failed)
        (void)nk_fail(err, NK_OVERLOADED, "no memory");
    else if (nk_ask_open(l->env, l->socket, NK_ASK_TIMEOUT_MS, &c, err) == 0)
        rc = nk_ask_json(c, "GET", (const char *)nk_buf_front(&target), NULL, out, err);
    nk_client_free(c);
    nk_buf_fini(&target);
    if (rc == 0 && (!*out || nk_json_type(*out) != NK_JSON_OBJECT)) {
        nk_json_free(*out);
        *out = NULL;
        return nk_fail(err, NK_INTERNAL, "the server's answer is not an object");
    }
    return rc;
}

static int print_page(const struct listing *l, const struct nk_json *page)
{
    const struct nk_json *entries = nk_json_get(page, "entries");
    struct nk_buf out = {0};
    int status;

    for (const struct nk_json *e = entries ? nk_json_first(entries) : NULL; e; e = nk_json_next(e))
        add_entry(&out, l, e);
    status = nk_out_buf(&out);
    nk_buf_fini(&out);
    return status;
}

/* A file is listed as itself. */
static int print_one(const struct listing *l)
{
    struct nk_json *entry = NULL;
    struct nk_buf out = {0};
    struct nk_err err;
    int status;

    if (ask(l, "stat", NULL, &entry, &err) < 0)
        return nk_out_fail(&err);
    if (strcmp(nk_ask_text(entry, "type", ""), "dir") == 0) {
        nk_json_free(entry);
        return -1;
    }
    add_entry(&out, l, entry);
    status = nk_out_buf(&out);
    nk_buf_fini(&out);
    nk_json_free(entry);
    return status;
}

static int print_all(const struct listing *l)
{
    char *cursor = strdup("");
    int status = cursor ? 0 : nk_out_fail_msg("no memory");

    while (cursor && status == 0) {
        struct nk_json *page = NULL;
        struct nk_err err;
        const char *next;

        if (ask(l, "list", cursor, &page, &err) < 0) {
            status = nk_out_fail(&err);
            break;
        }
        status = print_page(l, page);
        next = nk_ask_text(page, "next", NULL);
        free(cursor);
        cursor = next ? strdup(next) : NULL;
        nk_json_free(page);
    }
    free(cursor);
    return status;
}

static bool is_listable(const char *path)
{
    size_t len = strlen(path);

    return len == 0 || path[len - 1] == '/' || strcmp(path, ".") == 0;
}

int nk_cmd_ls(char **argv, const struct nk_cli_env *env)
{
    struct listing l = {.env = env, .path = ".", .terminal = isatty(STDOUT_FILENO)};
    const struct nk_args_opt table[] = {
        {"--long", 'l', NK_ARGS_FLAG, &l.wide},
        {"--recursive", 'R', NK_ARGS_FLAG, &l.recursive},
        {"--socket", 0, NK_ARGS_TEXT, &l.socket},
    };
    struct nk_args args = {.opts = table, .count = NK_COUNT(table)};
    int status = nk_args_begin(&args, argv);

    if (status != 0)
        return status;
    if (args.operand_count > 1)
        return nk_out_fail_msg("ls takes one path");
    if (args.operand_count == 1)
        l.path = args.operand[0];
    status = is_listable(l.path) ? -1 : print_one(&l);
    return status < 0 ? print_all(&l) : status;
}
