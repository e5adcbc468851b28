/*
 * One value of one option, from text into its field. Private to config.
 *
 * The texts of flags, variables, files and defaults all come through here.
 */
#ifndef NK_CONFIG_PARSE_H
#define NK_CONFIG_PARSE_H

#include "config_table.h"

/* A list grows by one. `where` names the place in the message: "--max-output". */
int nk_config_parse_set(struct nk_config *c, const struct nk_config_row *row, const char *text,
                        const char *where, struct nk_err *err);

/* A list grows by each part of `text`. */
int nk_config_parse_split(struct nk_config *c, const struct nk_config_row *row, const char *text,
                          const char *where, struct nk_err *err);

void nk_config_parse_clear(struct nk_config *c, const struct nk_config_row *row);

#endif
