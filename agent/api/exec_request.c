#include "api/exec_request.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/env.h"
#include "base/arena.h"
#include "base/attr.h"
#include "base/json.h"

#define NAME_MAX_LEN 64

static int no_memory(struct nk_err *err)
{
    return nk_fail(err, NK_OVERLOADED, "no memory for this request");
}

static int read_shell(const char *text, struct nk_arena *arena, struct nk_command *cmd,
                      struct nk_err *err)
{
    const char **argv = nk_arena_alloc(arena, 4 * sizeof *argv);

    if (!argv)
        return no_memory(err);
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = text;
    cmd->argv = argv;
    cmd->shell = true;
    return 0;
}

static int read_strings(const struct nk_json *list, const char *key, struct nk_arena *arena,
                        const char *const **out, struct nk_err *err)
{
    const char **strings = nk_arena_alloc(arena, (nk_json_count(list) + 1) * sizeof *strings);
    size_t i = 0;

    if (!strings)
        return no_memory(err);
    for (const struct nk_json *v = nk_json_first(list); v; v = nk_json_next(v)) {
        if (nk_json_type(v) != NK_JSON_STRING)
            return nk_fail(err, NK_BAD_REQUEST, "%s[%zu] must be a string, not %s", key, i,
                           nk_json_type_name(v));
        strings[i++] = nk_json_str(v);
    }
    *out = strings;
    return 0;
}

static int read_argv(const struct nk_json *list, struct nk_arena *arena, struct nk_command *cmd,
                     struct nk_err *err)
{
    if (nk_json_count(list) == 0)
        return nk_fail(err, NK_BAD_REQUEST, "command must not be an empty list");
    if (read_strings(list, "command", arena, &cmd->argv, err) < 0)
        return -1;
    if (cmd->argv[0][0] == '\0')
        return nk_fail(err, NK_BAD_REQUEST, "command[0] must not be empty");
    return 0;
}

static int read_command(const struct nk_json *object, struct nk_arena *arena,
                        struct nk_command *cmd, struct nk_err *err)
{
    const struct nk_json *v = nk_json_get(object, "command");

    if (!v)
        return nk_fail(err, NK_BAD_REQUEST, "command is missing");
    if (nk_json_type(v) == NK_JSON_STRING)
        return read_shell(nk_json_str(v), arena, cmd, err);
    if (nk_json_type(v) == NK_JSON_ARRAY)
        return read_argv(v, arena, cmd, err);
    return nk_fail(err, NK_BAD_REQUEST, "command must be a string or a list of strings, not %s",
                   nk_json_type_name(v));
}

/* A relative directory starts at the working directory; an absolute one is the child's to enter. */
static int read_cwd(const struct nk_json *object, const struct nk_api_settings *set,
                    struct nk_arena *arena, struct nk_command *cmd, struct nk_err *err)
{
    const char *cwd = NULL;
    size_t base_len = strlen(set->working_dir);
    size_t len;
    char *joined;

    if (nk_json_read_str(object, "cwd", &cwd, err) < 0)
        return -1;
    if (cwd && *cwd == '\0')
        return nk_fail(err, NK_BAD_PATH, "cwd must not be empty");
    cmd->cwd = cwd ? cwd : set->working_dir;
    if (!cwd || cwd[0] == '/')
        return 0;
    len = strlen(cwd);
    joined = nk_arena_alloc(arena, base_len + len + 2);
    if (!joined)
        return no_memory(err);
    memcpy(joined, set->working_dir, base_len);
    joined[base_len] = '/';
    memcpy(joined + base_len + 1, cwd, len);
    cmd->cwd = joined;
    return 0;
}

static int read_user(const struct nk_json *object, const struct nk_api_settings *set,
                     const char **out, struct nk_err *err)
{
    const char *user = NULL;

    if (nk_json_read_str(object, "user", &user, err) < 0)
        return -1;
    if (!user)
        return 0;
    for (const char *const *name = set->allow_users; name && *name; name++) {
        if (strcmp(*name, user) == 0) {
            *out = *name;
            return 0;
        }
    }
    return nk_fail(err, NK_FORBIDDEN, "user %s is not among those allowed by --allow-user", user);
}

static int read_timeout(const struct nk_json *object, const struct nk_api_settings *set,
                        uint64_t *out_ms, struct nk_err *err)
{
    double max = set->max_timeout_ms ? (double)set->max_timeout_ms / 1000.0 : 1e9;

    *out_ms = set->timeout_ms;
    return nk_json_read_seconds(object, "timeout", max, out_ms, err);
}

static int read_limits(const struct nk_json *object, const struct nk_api_settings *set,
                       struct nk_command *cmd, struct nk_err *err)
{
    uint64_t max_output = set->max_output;

    if (read_timeout(object, set, &cmd->timeout_ms, err) < 0)
        return -1;
    if (nk_json_read_u64(object, "max_output", 0, set->max_output, &max_output, err) < 0)
        return -1;
    cmd->max_output = (size_t)max_output;
    cmd->log_bytes = set->log_bytes;
    cmd->limits = set->limits;
    return 0;
}

static int read_flags(const struct nk_json *object, struct nk_exec_request *ask, struct nk_err *err)
{
    if (nk_json_read_bool(object, "stdin_open", &ask->cmd.stdin_open, err) < 0)
        return -1;
    if (nk_json_read_bool(object, "report_files", &ask->report_files, err) < 0)
        return -1;
    return nk_json_read_bool(object, "detach", &ask->detach, err);
}

static int read_code(const struct nk_json *object, struct nk_arena *arena,
                     struct nk_exec_request *ask, struct nk_err *err)
{
    const struct nk_json *args = nk_json_get(object, "args");

    if (nk_json_read_str(object, "code", &ask->code, err) < 0 ||
        nk_json_read_str(object, "language", &ask->language, err) < 0)
        return -1;
    if (!ask->code)
        return nk_fail(err, NK_BAD_REQUEST, "code is missing");
    if (!args)
        return 0;
    if (nk_json_type(args) != NK_JSON_ARRAY)
        return nk_fail(err, NK_BAD_REQUEST, "args must be a list of strings, not %s",
                       nk_json_type_name(args));
    return read_strings(args, "args", arena, &ask->args, err);
}

/* In a session: what belongs to the context is not for one run to choose. */
static int read_context(const struct nk_json *object, enum nk_exec_kind kind,
                        struct nk_exec_request *ask, struct nk_err *err)
{
    static const char *const others[] = {"command", "language", "args",         "env",  "cwd",
                                         "user",    "tty",      "report_files", "cols", "rows"};

    if (nk_json_read_bool(object, "queue", &ask->queue, err) < 0)
        return -1;
    if (kind != NK_EXEC_SESSION)
        return 0;
    if (nk_json_read_str(object, "context", &ask->context, err) < 0)
        return -1;
    if (!ask->context && nk_json_get(object, "queue"))
        return nk_fail(err, NK_BAD_REQUEST, "queue is for code in a context");
    for (size_t i = 0; ask->context && i < NK_COUNT(others); i++)
        if (nk_json_get(object, others[i]))
            return nk_fail(err, NK_BAD_REQUEST, "context and %s exclude each other", others[i]);
    return 0;
}

/* What is to be run: a command, or code. */
static int read_subject(const struct nk_json *object, enum nk_exec_kind kind,
                        struct nk_arena *arena, struct nk_exec_request *ask, struct nk_err *err)
{
    bool code = kind != NK_EXEC_WHOLE && kind != NK_EXEC_STREAM && kind != NK_EXEC_PROCESS;

    if (kind == NK_EXEC_CONTEXT_NEW)
        return nk_json_read_str(object, "language", &ask->language, err);
    if (kind == NK_EXEC_SESSION) {
        code = nk_json_get(object, "code") != NULL;
        if (code && nk_json_get(object, "command"))
            return nk_fail(err, NK_BAD_REQUEST, "command and code exclude each other");
        if (!code && (nk_json_get(object, "language") || nk_json_get(object, "args")))
            return nk_fail(err, NK_BAD_REQUEST, "code is missing");
    }
    return code ? read_code(object, arena, ask, err) : read_command(object, arena, &ask->cmd, err);
}

static int read_fields(const struct nk_json *object, const struct nk_api_settings *set,
                       struct nk_arena *arena, struct nk_exec_request *ask, struct nk_err *err)
{
    if (read_cwd(object, set, arena, &ask->cmd, err) < 0)
        return -1;
    if (read_limits(object, set, &ask->cmd, err) < 0)
        return -1;
    if (read_flags(object, ask, err) < 0)
        return -1;
    if (nk_env_build(set->env, nk_json_get(object, "env"), arena, &ask->cmd.envp, err) < 0)
        return -1;
    return read_user(object, set, &ask->user, err);
}

/* A name is a path segment of the API: visible, and never to be taken for something else. */
static int read_name(const struct nk_json *object, struct nk_command *cmd, struct nk_err *err)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const char *name = NULL;

    if (nk_json_read_str(object, "name", &name, err) < 0)
        return -1;
    if (!name)
        return 0;
    if (*name == '\0' || strlen(name) > NAME_MAX_LEN || name[strspn(name, allowed)] != '\0')
        return nk_fail(err, NK_BAD_REQUEST,
                       "name must be 1 to %d letters, digits, dots, dashes or underscores",
                       NAME_MAX_LEN);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return nk_fail(err, NK_BAD_REQUEST, "name must not be %s, which clients cut from paths",
                       name);
    cmd->name = name;
    return 0;
}

static int read_terminal(const struct nk_json *object, struct nk_command *cmd, struct nk_err *err)
{
    uint64_t cols = 80, rows = 24;

    if (nk_json_read_bool(object, "tty", &cmd->tty, err) < 0 ||
        nk_json_read_u64(object, "cols", 1, 65535, &cols, err) < 0 ||
        nk_json_read_u64(object, "rows", 1, 65535, &rows, err) < 0)
        return -1;
    cmd->cols = (unsigned)cols;
    cmd->rows = (unsigned)rows;
    return 0;
}

static int read_process_fields(const struct nk_json *object, const struct nk_api_settings *set,
                               struct nk_command *cmd, struct nk_err *err)
{
    uint64_t log_bytes = set->log_bytes;
    uint64_t log_max = set->log_total > set->log_bytes ? set->log_total : set->log_bytes;

    if (read_name(object, cmd, err) < 0 || read_terminal(object, cmd, err) < 0 ||
        nk_json_read_u64(object, "log_bytes", 1, log_max, &log_bytes, err) < 0)
        return -1;
    cmd->log_bytes = (size_t)log_bytes;
    return 0;
}

/* A session's input is always open, and its message says what it is. */
static int read_session_fields(const struct nk_json *object, struct nk_exec_request *ask,
                               struct nk_err *err)
{
    ask->cmd.stdin_open = true;
    if (nk_json_read_bool(object, "binary", &ask->binary, err) < 0)
        return -1;
    return read_terminal(object, &ask->cmd, err);
}

static int read_own_fields(const struct nk_json *object, enum nk_exec_kind kind,
                           const struct nk_api_settings *set, struct nk_exec_request *ask,
                           struct nk_err *err)
{
    if (kind == NK_EXEC_CONTEXT_NEW)
        return read_name(object, &ask->cmd, err);
    if (kind == NK_EXEC_PROCESS)
        return read_process_fields(object, set, &ask->cmd, err);
    return kind == NK_EXEC_SESSION ? read_session_fields(object, ask, err) : 0;
}

static int check_kind(enum nk_exec_kind kind, const struct nk_exec_request *ask, struct nk_err *err)
{
    if ((kind == NK_EXEC_WHOLE || kind == NK_EXEC_CODE || kind == NK_EXEC_CONTEXT) &&
        ask->cmd.stdin_open)
        return nk_fail(err, NK_BAD_REQUEST,
                       "stdin_open needs a way to send more input: a stream, a process or a "
                       "WebSocket");
    return 0;
}

#define ALL_FIELDS                                                                                 \
    "stdin", "stdin_base64", "stdin_open", "timeout", "env", "cwd", "user", "max_output", "detach"
#define COMMON_FIELDS ALL_FIELDS, "command", "report_files"
#define CODE_FIELDS "code", "language", "args"
#define CONTEXT_FIELDS                                                                             \
    "code", "queue", "timeout", "max_output", "detach", "stdin", "stdin_base64", "stdin_open"
#define FIELDS_MAX 24

static const char *const fields_of[][FIELDS_MAX] = {
    [NK_EXEC_WHOLE] = {COMMON_FIELDS},
    [NK_EXEC_STREAM] = {COMMON_FIELDS},
    [NK_EXEC_PROCESS] = {COMMON_FIELDS, "name", "tty", "cols", "rows", "log_bytes"},
    [NK_EXEC_SESSION] = {COMMON_FIELDS, CODE_FIELDS, "context", "queue", "type", "binary", "tty",
                         "cols", "rows"},
    [NK_EXEC_CODE] = {ALL_FIELDS, CODE_FIELDS},
    [NK_EXEC_CODE_STREAM] = {ALL_FIELDS, CODE_FIELDS},
    [NK_EXEC_CONTEXT_NEW] = {"language", "cwd", "env", "name"},
    [NK_EXEC_CONTEXT] = {CONTEXT_FIELDS},
    [NK_EXEC_CONTEXT_STREAM] = {CONTEXT_FIELDS},
};

static int check_fields(const struct nk_json *object, enum nk_exec_kind kind, struct nk_err *err)
{
    const char *const *names = fields_of[kind];
    size_t count = 0;

    while (count < FIELDS_MAX && names[count])
        count++;
    return nk_json_only(object, names, count, err);
}

int nk_exec_request_read(const struct nk_json *object, enum nk_exec_kind kind,
                         const struct nk_api_settings *set, struct nk_arena *arena,
                         struct nk_exec_request *out, struct nk_err *err)
{
    struct nk_exec_request ask = {0};

    if (check_fields(object, kind, err) < 0 || read_context(object, kind, &ask, err) < 0 ||
        read_subject(object, kind, arena, &ask, err) < 0 ||
        read_fields(object, set, arena, &ask, err) < 0 || check_kind(kind, &ask, err) < 0 ||
        read_own_fields(object, kind, set, &ask, err) < 0)
        return -1;
    if (nk_json_read_bytes(object, "stdin", &ask.stdin_data, &ask.cmd.stdin_len,
                           &ask.cmd.stdin_given, err) < 0)
        return -1;
    ask.cmd.stdin_data = ask.stdin_data;
    *out = ask;
    return 0;
}

void nk_exec_request_fini(struct nk_exec_request *ask)
{
    free(ask->stdin_data);
    ask->stdin_data = NULL;
    ask->cmd.stdin_data = NULL;
}
