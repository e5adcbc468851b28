/*
 * One line of the log, put together in a buffer of its own: JSON or text, always whole.
 *
 * A value is cut to NK_LOG_VALUE_MAX bytes; a field that does not fit is left out, and the line says
 * so. Every byte that could steer a terminal or end the line is escaped. No allocation.
 */
#ifndef NK_BASE_LOG_LINE_H
#define NK_BASE_LOG_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

#define NK_LOG_LINE_MAX 4096
#define NK_LOG_VALUE_MAX 512

struct nk_log_line {
    bool json;
    bool cut;    /* something was left out of the line */
    bool full;   /* what is being added does not fit */
    size_t room; /* of the text, without what the end needs */
    size_t len;
    char text[NK_LOG_LINE_MAX];
};

void nk_log_line_begin(struct nk_log_line *l, bool json, enum nk_log_level level, int64_t wall_ms);
void nk_log_line_head(struct nk_log_line *l, const char *event, const char *msg); /* msg or NULL */
void nk_log_line_field(struct nk_log_line *l, const struct nk_log_field *field);

/* `dropped` lines are missing before this one; 0 is not told. Adds the line feed. */
void nk_log_line_end(struct nk_log_line *l, uint64_t dropped);

#endif
