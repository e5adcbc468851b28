/*
 * Strict JSON, read: a wall in front of cJSON, which is more forgiving than a contract may be.
 *
 * Refused before cJSON sees it: bytes after the value, duplicate keys, `\u0000`, lone surrogates,
 * bad UTF-8, control characters in strings, numbers that RFC 8259 does not allow or of more than 63
 * characters, depth over 32, more than NK_JSON_MAX_VALUES values.
 * A value is borrowed from its document, and dies with it.
 */
#ifndef NK_BASE_JSON_H
#define NK_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct nk_json; /* a value; a document is its root value */

enum nk_json_type {
    NK_JSON_NULL,
    NK_JSON_BOOL,
    NK_JSON_NUMBER,
    NK_JSON_STRING,
    NK_JSON_ARRAY,
    NK_JSON_OBJECT,
};

#define NK_JSON_MAX_DEPTH 32
#define NK_JSON_MAX_VALUES 131072 /* what a body costs in memory and time is bounded by it */

/* NK_BAD_JSON with the byte offset and what is wrong there, or NK_OVERLOADED. */
int nk_json_parse(const void *text, size_t len, struct nk_json **out_root, struct nk_err *err);
void nk_json_free(struct nk_json *root);

enum nk_json_type nk_json_type(const struct nk_json *v);
const char *nk_json_type_name(const struct nk_json *v); /* "a string", "an object", … */
const char *nk_json_str(const struct nk_json *v);       /* of a string, else NULL; no NUL inside */
double nk_json_num(const struct nk_json *v);            /* of a number, else 0 */
bool nk_json_true(const struct nk_json *v);

/* Members and elements in order: `for (v = nk_json_first(o); v; v = nk_json_next(v))`. */
const struct nk_json *nk_json_first(const struct nk_json *v);
const struct nk_json *nk_json_next(const struct nk_json *v);
size_t nk_json_count(const struct nk_json *v);
const char *nk_json_key(const struct nk_json *member);
const struct nk_json *nk_json_get(const struct nk_json *object, const char *key); /* or NULL */

/* Reading an object of the contract. A missing member leaves *out as it is and is no error; a JSON
 * null is not missing but of the wrong type. Each error is NK_BAD_REQUEST, names the
 * field and what it must be. */
int nk_json_only(const struct nk_json *object, const char *const *names, size_t count,
                 struct nk_err *err); /* the first field that is not among `names` */
int nk_json_read_str(const struct nk_json *o, const char *key, const char **out,
                     struct nk_err *err);
int nk_json_read_bool(const struct nk_json *o, const char *key, bool *out, struct nk_err *err);
int nk_json_read_u64(const struct nk_json *o, const char *key, uint64_t min, uint64_t max,
                     uint64_t *out, struct nk_err *err); /* a whole number */
int nk_json_read_seconds(const struct nk_json *o, const char *key, double max, uint64_t *out_ms,
                         struct nk_err *err); /* > 0, fractions allowed, rounded up to 1 ms */
/* Text, or the same as base64 under another key, not both. */
struct nk_json_bytes {
    uint8_t *data; /* owned by the caller; NULL: not given */
    size_t len;
    bool given;
};
int nk_json_read_either(const struct nk_json *o, const char *key, const char *coded_key,
                        struct nk_json_bytes *out, struct nk_err *err);
/* `key` (text) or `key_base64`, not both; *out is allocated, owned by the caller. */
int nk_json_read_bytes(const struct nk_json *o, const char *key, uint8_t **out, size_t *out_len,
                       bool *out_given, struct nk_err *err);

#endif
