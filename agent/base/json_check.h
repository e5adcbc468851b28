/*
 * The wall in front of cJSON: one pass over a text that tells whether it is strict JSON.
 *
 * RFC 8259, and further: UTF-8 only, no `\u0000`, no lone surrogate, no key twice in an object (as
 * decoded), at most NK_JSON_MAX_DEPTH levels, NK_JSON_MAX_VALUES values, and numbers no longer than
 * cJSON reads. Iterative: the stack it uses does not depend on the text.
 */
#ifndef NK_BASE_JSON_CHECK_H
#define NK_BASE_JSON_CHECK_H

#include <stddef.h>

/* 0, or -EINVAL with what is wrong and at which byte, or -ENOMEM. */
int nk_json_check(const void *text, size_t len, const char **out_why, size_t *out_at);

#endif
