/*
 * Which part of a file is asked for, and under which conditions (RFC 9110, sections 13 and 14).
 *
 * Pure functions on header values; what is malformed is ignored, as the standard has it.
 */
#ifndef NK_HTTP_RANGE_H
#define NK_HTTP_RANGE_H

#include <stdbool.h>
#include <stdint.h>

enum nk_range {
    NK_RANGE_WHOLE, /* none asked for, malformed, or several */
    NK_RANGE_PART,
    NK_RANGE_BEYOND, /* nothing of it is there: 416 */
};

/* `value` may be NULL. *out_from and *out_len are set for a part. */
enum nk_range nk_range_parse(const char *value, uint64_t size, uint64_t *out_from,
                             uint64_t *out_len);

/* What a file is, for its conditions. */
struct nk_range_file {
    const char *etag; /* with its quotes; a strong one */
    int64_t mtime;    /* seconds */
    uint64_t size;
};

/* Header values, NULL where absent. */
struct nk_range_ask {
    const char *if_match;
    const char *if_unmodified_since;
    const char *if_none_match;
    const char *if_modified_since;
    const char *if_range;
    const char *range;
};

/* 200, 206 (with the part), 304, 412 or 416. */
int nk_range_judge(const struct nk_range_ask *ask, const struct nk_range_file *file,
                   uint64_t *out_from, uint64_t *out_len);

/* Seconds since 1970 of an HTTP date in any of its three forms, or -1. */
int64_t nk_range_parse_date(const char *value);

#endif
