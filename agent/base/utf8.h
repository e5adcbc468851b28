/*
 * UTF-8 as Unicode and RFC 3629 define it: no overlong forms, no surrogates, at most U+10FFFF.
 *
 * Pure functions; run at memory speed on ASCII.
 */
#ifndef NK_BASE_UTF8_H
#define NK_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

struct nk_buf;

bool nk_utf8_valid(const void *data, size_t len);

/* How many bytes at the front are whole, valid characters. */
size_t nk_utf8_valid_prefix(const void *data, size_t len);

/* How many bytes at the end (0 to 3) begin a character that more bytes could still complete. */
size_t nk_utf8_partial_tail(const void *data, size_t len);

/* How many bytes at the front are one invalid sequence, which one U+FFFD replaces (the
 * maximal-subpart practice of the Unicode standard, 3.9); 0 when they begin with a character. */
size_t nk_utf8_invalid_len(const void *data, size_t len);

#define NK_UTF8_REPLACEMENT "\xef\xbf\xbd"

/* Appends `data` with every invalid byte sequence replaced by U+FFFD. Returns whether anything was
 * replaced. */
bool nk_utf8_repair(struct nk_buf *out, const void *data, size_t len);

#endif
