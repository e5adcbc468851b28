#include "api/message.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/read.h"
#include "base/attr.h"
#include "process/process.h"
#include "process/stdin.h"

/* Stands for NUL while a text is JSON: a non-character, of which no terminal knows. */
#define NUL_ESCAPE "\\u0000"
#define STAND_IN "\\uffff"
#define STAND_IN_BYTES "\xef\xbf\xbf"
#define ESCAPE_LEN (sizeof NUL_ESCAPE - 1)

struct row {
    const char *name;
    const char *fields[4];
    int (*read)(const struct nk_json *o, struct nk_message *out, struct nk_err *err);
};

static int read_stdin(const struct nk_json *o, struct nk_message *out, struct nk_err *err)
{
    if (nk_json_read_u64(o, "offset", 0, UINT64_MAX - 1, &out->offset, err) < 0 ||
        nk_json_read_either(o, "text", "base64", &out->bytes, err) < 0)
        return -1;
    if (out->bytes.given)
        return 0;
    return nk_fail(err, NK_BAD_REQUEST, "text or base64 is missing");
}

static int read_nothing(const struct nk_json *o, struct nk_message *out, struct nk_err *err)
{
    (void)o;
    (void)out;
    (void)err;
    return 0;
}

static int read_size(const struct nk_json *o, const char *key, unsigned *out, struct nk_err *err)
{
    uint64_t n = 0;

    if (nk_json_read_u64(o, key, 1, UINT16_MAX, &n, err) < 0)
        return -1;
    if (n == 0)
        return nk_fail(err, NK_BAD_REQUEST, "%s is missing", key);
    *out = (unsigned)n;
    return 0;
}

static int read_resize(const struct nk_json *o, struct nk_message *out, struct nk_err *err)
{
    if (read_size(o, "cols", &out->cols, err) < 0)
        return -1;
    return read_size(o, "rows", &out->rows, err);
}

static int read_signal(const struct nk_json *o, struct nk_message *out, struct nk_err *err)
{
    if (!nk_json_get(o, "signal"))
        return nk_fail(err, NK_BAD_REQUEST, "signal is missing");
    return nk_read_signal(o, &out->signo, err);
}

static int read_kill(const struct nk_json *o, struct nk_message *out, struct nk_err *err)
{
    out->signo = SIGKILL;
    return nk_read_signal(o, &out->signo, err);
}

static const struct row rows[] = {
    [NK_MESSAGE_STDIN] = {"stdin", {"type", "text", "base64", "offset"}, read_stdin},
    [NK_MESSAGE_CLOSE_STDIN] = {"close_stdin", {"type"}, read_nothing},
    [NK_MESSAGE_RESIZE] = {"resize", {"type", "cols", "rows"}, read_resize},
    [NK_MESSAGE_SIGNAL] = {"signal", {"type", "signal"}, read_signal},
    [NK_MESSAGE_KILL] = {"kill", {"type", "signal"}, read_kill},
};

static int parse_object(const void *text, size_t len, struct nk_json **out, const char **out_type,
                        struct nk_err *err)
{
    struct nk_json *root = NULL;
    int rc = nk_json_parse(text, len, &root, err);

    *out_type = NULL;
    if (rc == 0 && nk_json_type(root) != NK_JSON_OBJECT)
        rc = nk_fail(err, NK_BAD_REQUEST, "a message must be an object, not %s",
                     nk_json_type_name(root));
    if (rc == 0)
        rc = nk_json_read_str(root, "type", out_type, err);
    if (rc == 0 && !*out_type)
        rc = nk_fail(err, NK_BAD_REQUEST, "type is missing");
    if (rc < 0) {
        nk_json_free(root);
        return -1;
    }
    *out = root;
    return 0;
}

static int read_row(const struct nk_json *root, const char *type, struct nk_message *out,
                    struct nk_err *err)
{
    for (size_t i = 0; i < NK_COUNT(rows); i++) {
        size_t count = 0;

        if (strcmp(rows[i].name, type) != 0)
            continue;
        while (count < NK_COUNT(rows[i].fields) && rows[i].fields[count])
            count++;
        out->type = (enum nk_message_type)i;
        if (nk_json_only(root, rows[i].fields, count, err) < 0)
            return -1;
        return rows[i].read(root, out, err);
    }
    return nk_fail(err, NK_BAD_REQUEST, "there is no message of type %.100s", type);
}

static int read_text(const void *text, size_t len, struct nk_message *out, struct nk_err *err)
{
    struct nk_message m = {.offset = NK_STDIN_NEXT};
    struct nk_json *root;
    const char *type;
    int rc;

    if (parse_object(text, len, &root, &type, err) < 0)
        return -1;
    rc = read_row(root, type, &m, err);
    nk_json_free(root);
    if (rc < 0)
        free(m.bytes.data);
    else
        *out = m;
    return rc;
}

/* Replaces every escape of NUL. False: what would stand in for it is there already. A backslash takes
 * the character behind it along. */
static bool replace_nul(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool room = len - i >= ESCAPE_LEN;

        if (len - i >= 3 && memcmp(text + i, STAND_IN_BYTES, 3) == 0)
            return false;
        if (text[i] != '\\')
            continue;
        if (room && strncasecmp(text + i, STAND_IN, ESCAPE_LEN) == 0)
            return false;
        if (room && memcmp(text + i, NUL_ESCAPE, ESCAPE_LEN) == 0)
            memcpy(text + i, STAND_IN, ESCAPE_LEN);
        i++;
    }
    return true;
}

static void restore_nul(struct nk_json_bytes *bytes)
{
    uint8_t *to = bytes->data;

    for (size_t i = 0; i < bytes->len; i++) {
        bool stand_in = bytes->len - i >= 3 && memcmp(bytes->data + i, STAND_IN_BYTES, 3) == 0;

        *to++ = stand_in ? 0 : bytes->data[i];
        i += stand_in ? 2 : 0;
    }
    bytes->len = (size_t)(to - bytes->data);
}

static int read_with_nul(const void *text, size_t len, struct nk_message *out, struct nk_err *err)
{
    char *copy = malloc(len);
    bool replaced;
    int rc;

    if (!copy)
        return nk_fail(err, NK_OVERLOADED, "no memory for this message");
    memcpy(copy, text, len);
    replaced = replace_nul(copy, len);
    rc = read_text(replaced ? copy : text, len, out, err);
    if (rc == 0 && replaced && out->type == NK_MESSAGE_STDIN)
        restore_nul(&out->bytes);
    free(copy);
    return rc;
}

int nk_message_read(const void *text, size_t len, struct nk_message *out, struct nk_err *err)
{
    if (memmem(text, len, NUL_ESCAPE, ESCAPE_LEN))
        return read_with_nul(text, len, out, err);
    return read_text(text, len, out, err);
}

int nk_message_read_start(const void *text, size_t len, struct nk_json **out, struct nk_err *err)
{
    struct nk_json *root;
    const char *type;

    if (parse_object(text, len, &root, &type, err) < 0)
        return -1;
    if (strcmp(type, "start") != 0) {
        (void)nk_fail(err, NK_BAD_REQUEST, "the first message must be of type start, not %.100s",
                      type);
        nk_json_free(root);
        return -1;
    }
    *out = root;
    return 0;
}
