/*
 * The built-in runtimes. Constant data.
 */
#ifndef NK_CODE_RUNTIME_TABLE_H
#define NK_CODE_RUNTIME_TABLE_H

#include <stddef.h>

#include "code/runtimes.h"

extern const struct nk_runtime nk_runtime_table[];
extern const size_t nk_runtime_table_count;

/* What node and ruby are started with, so that they look for modules in the working directory. */
extern const char nk_runtime_table_node[];
extern const char nk_runtime_table_ruby[];

#endif
