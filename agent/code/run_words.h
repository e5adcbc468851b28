/*
 * The command of a run: the words of a way, with what they stand for.
 *
 * Pure but for the arena that the result lies in.
 */
#ifndef NK_CODE_RUN_WORDS_H
#define NK_CODE_RUN_WORDS_H

#include <stdbool.h>

#include "base/arena.h"
#include "code/runtimes.h"

struct nk_run_words {
    const char *tool, *needs, *file, *dir, *cwd, *cache;
};

/* Whether a way needs to know what `word` stands for. */
bool nk_run_words_uses(const struct nk_runtime_way *way, const char *word);

/* NULL: no memory. */
const char *const *nk_run_words_argv(const struct nk_runtime_way *way,
                                     const struct nk_run_words *words, const char *const *args,
                                     struct nk_arena *arena);
const char *const *nk_run_words_env(const struct nk_runtime_way *way,
                                    const struct nk_run_words *words, const char *const *envp,
                                    struct nk_arena *arena);

#endif
