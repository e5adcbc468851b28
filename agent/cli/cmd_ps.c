#include "cli/cmd_ps.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"

#define COMMAND_MAX 60

const char nk_cmd_ps_help[] =
    "usage: nookd ps [--running] [--socket PATH]\n"
    "\n"
    "Lists processes, newest first: those that run and those that have ended lately.\n"
    "\n"
    "  --running      only those that run\n"
    "  --socket PATH  the daemon's socket\n";

static void add_cell(struct nk_buf *out, const char *s, size_t width)
{
    size_t len = strlen(s);

    nk_out_plain(out, len > 0 ? s : "-");
    for (len = len > 0 ? len : 1; len < width; len++)
        nk_buf_add_char(out, ' ');
    nk_buf_add_str(out, "  ");
}

static void add_status(struct nk_buf *out, const struct nk_json *process)
{
    const struct nk_json *code = nk_json_get(process, "exit_code");
    const char *signal = nk_ask_text(process, "signal", "");
    char cell[40];

    if (strcmp(nk_ask_text(process, "status", ""), "exited") != 0)
        (void)snprintf(cell, sizeof cell, "%s", nk_ask_text(process, "status", ""));
    else if (*signal != '\0')
        (void)snprintf(cell, sizeof cell, "exited %s", signal);
    else
        (void)snprintf(cell, sizeof cell, "exited %.0f", code ? nk_json_num(code) : 0);
    add_cell(out, cell, 12);
}

/* A shell's line or an argv list. */
static void add_command(struct nk_buf *out, const struct nk_json *command)
{
    const struct nk_json *word;
    struct nk_buf line = {0};
    size_t len;

    if (command && nk_json_str(command))
        nk_out_plain(&line, nk_json_str(command));
    for (word = command ? nk_json_first(command) : NULL; word; word = nk_json_next(word)) {
        if (nk_buf_left(&line) > 0)
            nk_buf_add_char(&line, ' ');
        nk_out_plain(&line, nk_json_str(word) ? nk_json_str(word) : "");
    }
    len = nk_buf_left(&line);
    if (len > COMMAND_MAX) {
        len = COMMAND_MAX;
        /* Not in the middle of a character. */
        while (len > 0 && (nk_buf_front(&line)[len] & 0xc0) == 0x80)
            len--;
    }
    nk_buf_add(out, nk_buf_front(&line), len);
    nk_buf_add_str(out, nk_buf_left(&line) > len ? "...\n" : "\n");
    nk_buf_fini(&line);
}

static void add_row(struct nk_buf *out, const struct nk_json *process)
{
    add_cell(out, nk_ask_text(process, "id", ""), 24);
    add_cell(out, nk_ask_text(process, "name", ""), 12);
    add_status(out, process);
    add_cell(out, nk_ask_text(process, "started_at", ""), 24);
    add_command(out, nk_json_get(process, "command"));
}

static int print_table(const struct nk_json *root)
{
    const struct nk_json *list = nk_json_get(root, "processes");
    struct nk_buf out = {0};
    int status;

    add_cell(&out, "ID", 24);
    add_cell(&out, "NAME", 12);
    add_cell(&out, "STATUS", 12);
    add_cell(&out, "STARTED", 24);
    nk_buf_add_str(&out, "COMMAND\n");
    for (const struct nk_json *p = list ? nk_json_first(list) : NULL; p; p = nk_json_next(p))
        add_row(&out, p);
    status = nk_out_buf(&out);
    nk_buf_fini(&out);
    return status;
}

static int list(const struct nk_cli_env *env, const char *socket, bool running)
{
    const char *path = running ? "/v1/processes?running=true" : "/v1/processes";
    struct nk_client *c = NULL;
    struct nk_json *root = NULL;
    struct nk_err err;
    int status;

    if (nk_ask_open(env, socket, NK_ASK_TIMEOUT_MS, &c, &err) < 0)
        return nk_out_fail(&err);
    if (nk_ask_json(c, "GET", path, NULL, &root, &err) < 0)
        status = nk_out_fail(&err);
    else if (!root || nk_json_type(root) != NK_JSON_OBJECT)
        status = nk_out_fail_msg("the server's answer is not an object");
    else
        status = print_table(root);
    nk_client_free(c);
    nk_json_free(root);
    return status;
}

int nk_cmd_ps(char **argv, const struct nk_cli_env *env)
{
    const char *socket = NULL;
    bool running = false;
    const struct nk_args_opt table[] = {
        {"--running", 0, NK_ARGS_FLAG, &running},
        {"--socket", 0, NK_ARGS_TEXT, &socket},
    };
    struct nk_args args = {.opts = table, .count = NK_COUNT(table)};
    int status = nk_args_begin(&args, argv);

    if (status != 0)
        return status;
    if (args.operand_count > 0)
        return nk_out_fail_msg("ps takes no operands");
    return list(env, socket, running);
}
