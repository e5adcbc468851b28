#include "cli/run_result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/fd_io.h"
#include "base/json.h"
#include "base/scope.h"
#include "cli/ask.h"
#include "cli/out.h"

static int tell_line(const char *what, const char *path)
{
    struct nk_buf line = {0};
    int rc;

    nk_buf_add_str(&line, what);
    nk_out_plain(&line, path);
    nk_buf_add_char(&line, '\n');
    rc = nk_out_write(NULL, STDERR_FILENO, nk_buf_front(&line), nk_buf_left(&line));
    nk_buf_fini(&line);
    return rc;
}

static int tell_changes(const struct nk_json *list)
{
    for (const struct nk_json *v = list ? nk_json_first(list) : NULL; v; v = nk_json_next(v)) {
        int rc = tell_line("changed: ", nk_ask_text(v, "path", ""));

        if (rc != 0)
            return rc;
    }
    return 0;
}

/* NULL: a name that is none of a plain, visible file. */
static const char *plain_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    return *name == '\0' || *name == '.' ? NULL : name;
}

static int write_file(int dir, const char *name, const uint8_t *data, size_t len)
{
    nk_auto_fd int fd =
        openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);

    return fd < 0 ? -errno : nk_fd_io_write(fd, data, len);
}

static int save(int dir, const char *path, const char *text)
{
    const char *name = plain_name(path);
    nk_auto_free uint8_t *data = NULL;
    size_t len = strlen(text);
    int rc;

    if (!name)
        return tell_line("not saved, its name is no plain one: ", path);
    data = malloc(len + 1);
    if (!data)
        return nk_out_fail_msg("out of memory");
    if (nk_base64_decode(text, len, data, &len) < 0)
        return nk_out_fail_msg("the result is broken: an output is not base64");
    rc = write_file(dir, name, data, len);
    if (rc < 0)
        return nk_out_fail_msg("cannot save %s: %s", name, strerror(-rc));
    return tell_line("saved: ", name);
}

static int save_all(const char *path, const struct nk_json *list)
{
    nk_auto_fd int dir = -1;

    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return nk_out_fail_msg("cannot make %s: %s", path, strerror(errno));
    dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return nk_out_fail_msg("cannot open %s: %s", path, strerror(errno));
    for (const struct nk_json *v = list ? nk_json_first(list) : NULL; v; v = nk_json_next(v)) {
        const struct nk_json *data = nk_json_get(v, "data_base64");
        const char *text = data ? nk_json_str(data) : NULL;
        const char *from = nk_ask_text(v, "path", "");
        int rc = text ? save(dir, from, text) : tell_line("not saved, too large: ", from);

        if (rc != 0)
            return rc;
    }
    return 0;
}

static int print(int fd, const struct nk_json *object, const char *key)
{
    const char *text = nk_ask_text(object, key, "");
    size_t len = strlen(text);
    int rc = len > 0 ? nk_out_write(NULL, fd, text, len) : 0;

    return rc == 0 && len > 0 && text[len - 1] != '\n' ? nk_out_write(NULL, fd, "\n", 1) : rc;
}

static bool is_object(const struct nk_json *v)
{
    return v && nk_json_type(v) == NK_JSON_OBJECT;
}

int nk_run_result_show(const struct nk_json *bundle)
{
    return is_object(bundle) ? print(STDOUT_FILENO, bundle, "text/plain") : 0;
}

/* What only code in a context gives: state that was lost, an error, a value. */
static int tell_context(const struct nk_json *result)
{
    const struct nk_json *error = nk_json_get(result, "error");
    const struct nk_json *reset = nk_json_get(result, "context_reset");
    const char *traceback;
    int rc = 0;

    if (reset && nk_json_true(reset))
        rc = tell_line("reset: ", "the interpreter had ended, and its state with it");
    if (rc == 0)
        rc = nk_run_result_show(nk_json_get(result, "result"));
    if (rc != 0 || !is_object(error))
        return rc;
    traceback = nk_ask_text(error, "traceback", "");
    return print(STDERR_FILENO, error, *traceback ? "traceback" : "value");
}

int nk_run_result_tell(const void *dir, const struct nk_json *result)
{
    int rc = tell_context(result);

    if (rc == 0)
        rc = tell_changes(nk_json_get(result, "files_changed"));

    return rc != 0 || !dir ? rc : save_all(dir, nk_json_get(result, "outputs"));
}
