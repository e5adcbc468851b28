#include "base/json.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json_check.h"
#include "base/utf8.h"

#define WHOLE_MAX 9007199254740992.0 /* 2^53: above it a double skips whole numbers */
#define SECONDS_MAX 1e12             /* in milliseconds still far inside 64 bits */
#define NAME_SHOWN 64

static const cJSON *inner(const struct nk_json *v)
{
    return (const cJSON *)(const void *)v;
}

static const struct nk_json *outer(const cJSON *item)
{
    return (const struct nk_json *)(const void *)item;
}

int nk_json_parse(const void *text, size_t len, struct nk_json **out_root, struct nk_err *err)
{
    const char *why = "";
    size_t at = 0;
    int rc = nk_json_check(text, len, &why, &at);
    cJSON *root;

    if (rc == -EINVAL)
        return nk_fail(err, NK_BAD_JSON, "invalid JSON at byte %zu: %s", at, why);
    root = rc == 0 ? cJSON_ParseWithLengthOpts(text, len, NULL, 0) : NULL;
    if (!root) /* the text is good, so only memory can be missing */
        return nk_fail(err, NK_OVERLOADED, "no memory for the JSON text");
    *out_root = (struct nk_json *)(void *)root;
    return 0;
}

void nk_json_free(struct nk_json *root)
{
    cJSON_Delete((cJSON *)(void *)root);
}

enum nk_json_type nk_json_type(const struct nk_json *v)
{
    switch (inner(v)->type & 0xff) {
    case cJSON_False:
    case cJSON_True:
        return NK_JSON_BOOL;
    case cJSON_Number:
        return NK_JSON_NUMBER;
    case cJSON_String:
        return NK_JSON_STRING;
    case cJSON_Array:
        return NK_JSON_ARRAY;
    case cJSON_Object:
        return NK_JSON_OBJECT;
    default:
        return NK_JSON_NULL;
    }
}

const char *nk_json_type_name(const struct nk_json *v)
{
    static const char *const names[] = {
        [NK_JSON_NULL] = "null",       [NK_JSON_BOOL] = "a boolean", [NK_JSON_NUMBER] = "a number",
        [NK_JSON_STRING] = "a string", [NK_JSON_ARRAY] = "an array", [NK_JSON_OBJECT] = "an object",
    };

    return names[nk_json_type(v)];
}

const char *nk_json_str(const struct nk_json *v)
{
    return nk_json_type(v) == NK_JSON_STRING ? inner(v)->valuestring : NULL;
}

double nk_json_num(const struct nk_json *v)
{
    return nk_json_type(v) == NK_JSON_NUMBER ? inner(v)->valuedouble : 0;
}

bool nk_json_true(const struct nk_json *v)
{
    return (inner(v)->type & 0xff) == cJSON_True;
}

const struct nk_json *nk_json_first(const struct nk_json *v)
{
    return outer(inner(v)->child);
}

const struct nk_json *nk_json_next(const struct nk_json *v)
{
    return outer(inner(v)->next);
}

size_t nk_json_count(const struct nk_json *v)
{
    size_t n = 0;

    for (v = nk_json_first(v); v; v = nk_json_next(v))
        n++;
    return n;
}

const char *nk_json_key(const struct nk_json *member)
{
    return inner(member)->string;
}

const struct nk_json *nk_json_get(const struct nk_json *object, const char *key)
{
    if (nk_json_type(object) != NK_JSON_OBJECT)
        return NULL;
    return outer(cJSON_GetObjectItemCaseSensitive(inner(object), key));
}

/* Names come from the client: cut at a length, and not inside a character. */
static int shown(const char *name)
{
    size_t len = strnlen(name, NAME_SHOWN + 1);

    if (len <= NAME_SHOWN)
        return (int)len;
    return (int)(NAME_SHOWN - nk_utf8_partial_tail(name, NAME_SHOWN));
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

int nk_json_only(const struct nk_json *object, const char *const *names, size_t count,
                 struct nk_err *err)
{
    const struct nk_json *v;

    if (nk_json_type(object) != NK_JSON_OBJECT)
        return nk_fail(err, NK_BAD_REQUEST, "an object is expected, not %s",
                       nk_json_type_name(object));
    for (v = nk_json_first(object); v; v = nk_json_next(v)) {
        const char *key = nk_json_key(v);

        if (!is_among(key, names, count))
            return nk_fail(err, NK_BAD_REQUEST, "unknown field \"%.*s\"", shown(key), key);
    }
    return 0;
}

static int fail_type(const char *key, const char *want, const struct nk_json *v, struct nk_err *err)
{
    return nk_fail(err, NK_BAD_REQUEST, "%s must be %s, not %s", key, want, nk_json_type_name(v));
}

int nk_json_read_str(const struct nk_json *o, const char *key, const char **out, struct nk_err *err)
{
    const struct nk_json *v = nk_json_get(o, key);

    if (!v)
        return 0;
    if (nk_json_type(v) != NK_JSON_STRING)
        return fail_type(key, "a string", v, err);
    *out = nk_json_str(v);
    return 0;
}

int nk_json_read_bool(const struct nk_json *o, const char *key, bool *out, struct nk_err *err)
{
    const struct nk_json *v = nk_json_get(o, key);

    if (!v)
        return 0;
    if (nk_json_type(v) != NK_JSON_BOOL)
        return fail_type(key, "true or false", v, err);
    *out = nk_json_true(v);
    return 0;
}

int nk_json_read_u64(const struct nk_json *o, const char *key, uint64_t min, uint64_t max,
                     uint64_t *out, struct nk_err *err)
{
    const struct nk_json *v = nk_json_get(o, key);
    double num;

    if (!v)
        return 0;
    if (nk_json_type(v) != NK_JSON_NUMBER)
        return fail_type(key, "a number", v, err);
    num = nk_json_num(v);
    if (!(num >= 0 && num <= WHOLE_MAX) || (double)(uint64_t)num != num || (uint64_t)num < min ||
        (uint64_t)num > max)
        return nk_fail(err, NK_BAD_REQUEST, "%s must be a whole number from %llu to %llu", key,
                       (unsigned long long)min, (unsigned long long)max);
    *out = (uint64_t)num;
    return 0;
}

int nk_json_read_seconds(const struct nk_json *o, const char *key, double max, uint64_t *out_ms,
                         struct nk_err *err)
{
    const struct nk_json *v = nk_json_get(o, key);
    double top = max < SECONDS_MAX ? max : SECONDS_MAX;
    double ms;

    if (!v)
        return 0;
    if (nk_json_type(v) != NK_JSON_NUMBER)
        return fail_type(key, "a number of seconds", v, err);
    if (!(nk_json_num(v) > 0 && nk_json_num(v) <= top))
        return nk_fail(err, NK_BAD_REQUEST, "%s must be above 0 and at most %g seconds", key, top);
    ms = nk_json_num(v) * 1000;
    *out_ms = (uint64_t)ms;
    if (ms - (double)*out_ms > 1e-6 || *out_ms == 0) /* 1.1 s is 1100.0000000000002 ms */
        ++*out_ms;
    return 0;
}

static int copy_bytes(const char *text, bool base64, const char *key, uint8_t **out,
                      size_t *out_len, struct nk_err *err)
{
    size_t len = strlen(text);
    uint8_t *bytes = malloc(len + 1);

    if (!bytes)
        return nk_fail(err, NK_OVERLOADED, "no memory for %s", key);
    if (!base64) {
        memcpy(bytes, text, len);
    } else if (nk_base64_decode(text, len, bytes, &len) < 0) {
        free(bytes);
        return nk_fail(err, NK_BAD_REQUEST, "%s must be base64 (RFC 4648, padded)", key);
    }
    *out = bytes;
    *out_len = len;
    return 0;
}

int nk_json_read_either(const struct nk_json *o, const char *key, const char *coded_key,
                        struct nk_json_bytes *out, struct nk_err *err)
{
    const char *text = NULL, *coded = NULL;

    if (nk_json_read_str(o, key, &text, err) < 0 || nk_json_read_str(o, coded_key, &coded, err) < 0)
        return -1;
    if (text && coded)
        return nk_fail(err, NK_BAD_REQUEST, "give %s or %s, not both", key, coded_key);
    if (text && copy_bytes(text, false, key, &out->data, &out->len, err) < 0)
        return -1;
    if (coded && copy_bytes(coded, true, coded_key, &out->data, &out->len, err) < 0)
        return -1;
    out->given = text || coded;
    return 0;
}

int nk_json_read_bytes(const struct nk_json *o, const char *key, uint8_t **out, size_t *out_len,
                       bool *out_given, struct nk_err *err)
{
    char coded_key[NAME_SHOWN];
    struct nk_json_bytes bytes = {0};

    (void)snprintf(coded_key, sizeof coded_key, "%s_base64", key);
    if (nk_json_read_either(o, key, coded_key, &bytes, err) < 0)
        return -1;
    *out_given = bytes.given;
    if (bytes.given) {
        *out = bytes.data;
        *out_len = bytes.len;
    }
    return 0;
}
