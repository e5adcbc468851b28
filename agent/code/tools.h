/*
 * Programs, looked for as the user would find them.
 *
 * Blocking (a few system calls a folder of PATH); on pool threads with the user's rights.
 */
#ifndef NK_CODE_TOOLS_H
#define NK_CODE_TOOLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "code/runtimes.h"

#define NK_TOOLS_PATH_MAX 1024

/* A program, and what tells it from another at the same path. */
struct nk_tool {
    char path[NK_TOOLS_PATH_MAX];
    dev_t dev;
    ino_t ino;
    int64_t mtime_ns;
};

/* The first of that name in `search`, a list with colons of which only absolute folders count; a
 * name with a slash is looked for alone. */
bool nk_tools_find(const char *name, const char *search, struct nk_tool *out);

/* The tool of a way and what it needs beside (path empty: nothing). Versions are not looked at. */
bool nk_tools_find_way(const struct nk_runtime_way *way, const char *search, struct nk_tool *out,
                       struct nk_tool *out_needs);

/* The value of NAME in a list of "NAME=VALUE", or `fallback`. Borrowed. */
const char *nk_tools_env(const char *const *envp, const char *name, const char *fallback);
#define NK_TOOLS_SEARCH "/usr/local/bin:/usr/bin:/bin" /* where no PATH is set */

#endif
