/*
 * The log: one line a record on standard error, JSON or text.
 *
 * Never blocks: the descriptor is the log's own and non-blocking; what does not fit waits in a queue
 * of 64 KiB, and what does not fit there is dropped and counted (the next line that goes out tells
 * how many). Never holds payload, secrets, queries or raw names: every byte below 0x20, 0x7f and
 * the C1 controls are escaped. Loop thread only, except nk_log_level.
 */
#ifndef NK_BASE_LOG_H
#define NK_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

enum nk_log_level { NK_LOG_DEBUG, NK_LOG_INFO, NK_LOG_WARN, NK_LOG_ERROR, NK_LOG_OFF };

/* The key and value pairs of a record; a table on the stack, ended by a NULL key. */
struct nk_log_field {
    const char *key;
    const char *str; /* NULL: `num` is the value */
    int64_t num;
};

void nk_log_init(int fd, enum nk_log_level level, bool json); /* borrows fd: reopens or dups it */
void nk_log_fini(void);
bool nk_log_on(enum nk_log_level level);

/* `event` is a short fixed name ("start", "request"); `msg` a sentence or NULL. */
void nk_log_write(enum nk_log_level level, const char *event, const char *msg,
                  const struct nk_log_field *fields);
void nk_log_msg(enum nk_log_level level, const char *event, const char *fmt, ...) NK_PRINTF(3, 4);

/* Bytes are waiting for the descriptor to take them: the loop polls nk_log_fd() and flushes. */
bool nk_log_pending(void);
int nk_log_fd(void);
void nk_log_flush(void);
uint64_t nk_log_dropped(void);

#endif
