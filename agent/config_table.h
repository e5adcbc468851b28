/*
 * The rows of the option table. Private to config and its test.
 *
 * A row's name gives the flag (--max-output), the variable (NOOKD_MAX_OUTPUT) and the key of a
 * configuration file ("max-output"). Constant data; owns nothing.
 */
#ifndef NK_CONFIG_TABLE_H
#define NK_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"

#define NK_CONFIG_ROWS_MAX 80

enum nk_config_type {                  /* the field at `at` */
                      NK_CONFIG_BOOL,  /* bool */
                      NK_CONFIG_TEXT,  /* char *, owned; "none" is NULL where `none` */
                      NK_CONFIG_LIST,  /* struct nk_strings; the flag may be repeated */
                      NK_CONFIG_COUNT, /* uint64_t within bounds; "none" is 0 where `none` */
                      NK_CONFIG_BYTES, /* the same, KiB MiB GiB may follow */
                      NK_CONFIG_TIME, /* uint64_t milliseconds from seconds; bounds are milliseconds */
                      NK_CONFIG_RANGE,  /* two uint64_t, one after the other, from "A-B" */
                      NK_CONFIG_EITHER, /* bool: the second of two choices */
                      NK_CONFIG_CHOICE, /* int: the index among choices */
                      NK_CONFIG_MASK,   /* uint32_t: a bit for each choice in a list */
                      NK_CONFIG_SIGNAL, /* int: a signal's number; "none" is 0 */
                      NK_CONFIG_FD,     /* int */
                      NK_CONFIG_FILE,   /* no field: the configuration file itself */
};

struct nk_config_row {
    const char *name;
    enum nk_config_type type;
    bool none; /* the word "none" turns it off */
    char sep;  /* lists: between the values of a variable; 0: a comma */
    size_t at; /* offset in struct nk_config */
    uint64_t min, max;
    const char *fallback;            /* the default, as text; lists: by commas; NULL: empty */
    const char *choices;             /* "group|child" */
    bool (*valid)(const char *text); /* texts and list values, beside being non-empty */
    const char *arg;                 /* as help shows it, and what an error says it must be */
    const char *help;
};

extern const struct nk_config_row nk_config_table[];
extern const size_t nk_config_table_count;

const struct nk_config_row *nk_config_table_find(const char *name, size_t len); /* or NULL */

#define NK_CONFIG_VARIABLE_MAX 64
void nk_config_table_variable(const struct nk_config_row *row, char out[NK_CONFIG_VARIABLE_MAX]);

static inline void *nk_config_table_field(struct nk_config *c, const struct nk_config_row *row)
{
    return (char *)c + row->at;
}

#endif
