/*
 * Base64, RFC 4648 section 4: standard alphabet, padded. Decoding is strict: no white space, no
 * missing padding, no stray bits.
 */
#ifndef NK_BASE_BASE64_H
#define NK_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

struct nk_buf;

void nk_base64_encode(struct nk_buf *out, const void *data, size_t len);

/* Decodes into `out`, which has room for len / 4 * 3 bytes. 0, or -EINVAL. */
int nk_base64_decode(const char *text, size_t len, uint8_t *out, size_t *out_len);

#endif
