/*
 * Descriptions of runtimes in a folder: one JSON object a file, read strictly.
 *
 *   {"id": "lua", "aliases": ["lua5.4"], "tool": ["lua", "lua5.4"], "file": "main.lua",
 *    "argv": ["{tool}", "{file}"], "env": {"LUA_PATH": "{cwd}/?.lua"}, "version": "-v"}
 *
 * `tool` (a name or up to three) and `argv` are needed. Blocking; at start only.
 */
#ifndef NK_CODE_RUNTIME_FILE_H
#define NK_CODE_RUNTIME_FILE_H

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "code/runtimes.h"

#define NK_RUNTIME_FILE_MAX (64u * 1024u)
#define NK_RUNTIME_FILES_MAX 64

struct nk_runtime_files {
    struct nk_arena arena;   /* all strings */
    struct nk_runtime *item; /* in the arena */
    size_t count;
};

/* Of one text; `name` is of the file, for errors. */
int nk_runtime_file_read(const char *name, const void *text, size_t len, struct nk_arena *arena,
                         struct nk_runtime *out, struct nk_err *err);
/* Every *.json of the folder, by name; one that is absent has none. */
int nk_runtime_file_read_all(const char *dir, struct nk_runtime_files *out, struct nk_err *err);
void nk_runtime_file_fini(struct nk_runtime_files *files);

#endif
