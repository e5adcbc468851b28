/*
 * Options from a JSON file: one object, keys as the flags without dashes in front. Private to config.
 */
#ifndef NK_CONFIG_FILE_H
#define NK_CONFIG_FILE_H

#include "config_table.h"

#define NK_CONFIG_FILE_MAX (256u * 1024u)

/* Calls `set` for each value, in the file's order; a null is skipped. `where` is "FILE: key". */
typedef int (*nk_config_file_fn)(void *ctx, const struct nk_config_row *row, const char *text,
                                 const char *where, struct nk_err *err);

int nk_config_file_read(const char *path, nk_config_file_fn set, void *ctx, struct nk_err *err);

#endif
