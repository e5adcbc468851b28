/*
 * JSON, written: straight into a buffer, without a tree.
 *
 * The caller keeps braces balanced; commas are placed here. In an array the key is NULL. Errors are
 * those of the buffer (nk_buf.failed). Text must be valid UTF-8; use _bytes where it may not be.
 */
#ifndef NK_BASE_JSON_OUT_H
#define NK_BASE_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct nk_json_out {
    struct nk_buf *buf; /* borrowed: outlives the writer */
    bool comma;         /* a value has been written at this level */
};

void nk_json_out_open(struct nk_json_out *o, const char *key, char bracket); /* '{' or '[' */
void nk_json_out_close(struct nk_json_out *o, char bracket);                 /* '}' or ']' */
void nk_json_out_str(struct nk_json_out *o, const char *key, const char *s); /* NULL: null */
void nk_json_out_strn(struct nk_json_out *o, const char *key, const void *s, size_t len);
void nk_json_out_u64(struct nk_json_out *o, const char *key, uint64_t v);
void nk_json_out_i64(struct nk_json_out *o, const char *key, int64_t v);
void nk_json_out_real(struct nk_json_out *o, const char *key, double v);
void nk_json_out_bool(struct nk_json_out *o, const char *key, bool v);
void nk_json_out_null(struct nk_json_out *o, const char *key);
void nk_json_out_base64(struct nk_json_out *o, const char *key, const void *data, size_t len);
void nk_json_out_time(struct nk_json_out *o, const char *key, int64_t wall_ms); /* 0: null */
void nk_json_out_raw(struct nk_json_out *o, const char *key, const void *json, size_t len);

/* `key`: the text with invalid bytes replaced; only where that lost something also `key_base64`
 * with the exact bytes (the contract's form of whole results and of names). */
void nk_json_out_bytes(struct nk_json_out *o, const char *key, const void *data, size_t len);

/* The text between the quotes: quotes, backslashes and control characters escaped. Runs at memory
 * speed over bytes that need none. */
void nk_json_out_escape(struct nk_buf *out, const void *data, size_t len);

#endif
