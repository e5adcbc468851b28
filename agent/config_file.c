#include "config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/scope.h"

struct reader {
    const char *path;      /* borrowed */
    nk_config_file_fn set; /* the caller's */
    void *ctx;
};

/* The whole file; at most NK_CONFIG_FILE_MAX bytes. */
static int slurp(const char *path, char **out, size_t *out_len, struct nk_err *err)
{
    nk_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    nk_auto_free char *text = NULL;
    size_t len = 0;

    if (fd < 0)
        return nk_fail(err, NK_BAD_REQUEST, "--config: cannot open %s: %s", path, strerror(errno));
    text = malloc(NK_CONFIG_FILE_MAX + 1);
    if (!text)
        return nk_fail(err, NK_OVERLOADED, "--config: no memory");
    while (len <= NK_CONFIG_FILE_MAX) {
        ssize_t n = read(fd, text + len, NK_CONFIG_FILE_MAX + 1 - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return nk_fail(err, NK_BAD_REQUEST, "--config: cannot read %s: %s", path,
                           strerror(errno));
        if (n == 0)
            break;
        len += (size_t)n;
    }
    if (len > NK_CONFIG_FILE_MAX)
        return nk_fail(err, NK_BAD_REQUEST, "--config: %s is larger than %u bytes", path,
                       NK_CONFIG_FILE_MAX);
    *out = nk_take_ptr(&text);
    *out_len = len;
    return 0;
}

static bool is_number_row(const struct nk_config_row *row)
{
    return row->type == NK_CONFIG_COUNT || row->type == NK_CONFIG_BYTES ||
           row->type == NK_CONFIG_TIME || row->type == NK_CONFIG_FD ||
           row->type == NK_CONFIG_SIGNAL;
}

/* As the text that a flag would have; NULL where the JSON type does not fit the option. */
static const char *as_text(const struct nk_config_row *row, const struct nk_json *v,
                           char scratch[32])
{
    double n = nk_json_num(v);

    switch (nk_json_type(v)) {
    case NK_JSON_STRING:
        return row->type == NK_CONFIG_BOOL ? NULL : nk_json_str(v);
    case NK_JSON_BOOL:
        if (row->type != NK_CONFIG_BOOL)
            return NULL;
        return nk_json_true(v) ? "true" : "false";
    case NK_JSON_NUMBER:
        if (!is_number_row(row) || n < 0 || n > 9007199254740992.0)
            return NULL;
        (void)snprintf(scratch, 32, n == (double)(uint64_t)n ? "%.0f" : "%.6f", n);
        return scratch;
    default:
        return NULL;
    }
}

static int set_value(const struct reader *r, const struct nk_config_row *row,
                     const struct nk_json *v, const char *where, struct nk_err *err)
{
    char scratch[32];
    const char *text = as_text(row, v, scratch);

    if (!text)
        return nk_fail(err, NK_BAD_REQUEST, "%s: cannot be %s", where, nk_json_type_name(v));
    return r->set(r->ctx, row, text, where, err);
}

static int set_array(const struct reader *r, const struct nk_config_row *row,
                     const struct nk_json *v, const char *where, struct nk_err *err)
{
    for (const struct nk_json *e = nk_json_first(v); e; e = nk_json_next(e)) {
        if (set_value(r, row, e, where, err) < 0)
            return -1;
    }
    return 0;
}

static int set_member(const struct reader *r, const struct nk_json *v, struct nk_err *err)
{
    const char *key = nk_json_key(v);
    const struct nk_config_row *row = nk_config_table_find(key, strlen(key));
    char where[160];

    (void)snprintf(where, sizeof where, "%.100s: %.40s", r->path, key);
    if (!row || row->type == NK_CONFIG_FILE)
        return nk_fail(err, NK_BAD_REQUEST, "%s: no such option", where);
    if (nk_json_type(v) == NK_JSON_NULL)
        return 0;
    if (row->type == NK_CONFIG_LIST && nk_json_type(v) == NK_JSON_ARRAY)
        return set_array(r, row, v, where, err);
    return set_value(r, row, v, where, err);
}

int nk_config_file_read(const char *path, nk_config_file_fn set, void *ctx, struct nk_err *err)
{
    struct reader r = {.path = path, .set = set, .ctx = ctx};
    nk_auto_free char *text = NULL;
    struct nk_json *root = NULL;
    struct nk_err cause;
    size_t len = 0;
    int rc = 0;

    if (slurp(path, &text, &len, err) < 0)
        return -1;
    if (nk_json_parse(text, len, &root, &cause) < 0)
        return nk_fail(err, NK_BAD_REQUEST, "--config: %.80s: %.150s", path, cause.msg);
    if (nk_json_type(root) != NK_JSON_OBJECT)
        rc = nk_fail(err, NK_BAD_REQUEST, "--config: %.100s: must hold an object", path);
    for (const struct nk_json *v = nk_json_first(root); v && rc == 0; v = nk_json_next(v))
        rc = set_member(&r, v, err);
    nk_json_free(root);
    return rc;
}
