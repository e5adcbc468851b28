#include "code/run_words.h"

#include <stdbool.h>
#include <string.h>

#include "base/attr.h"
#include "base/buf.h"
#include "code/tools.h"

static size_t count_strings(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

/* What a word in braces stands for; NULL: nothing. */
static const char *meaning(const struct nk_run_words *words, const char *at, size_t *out_len)
{
    const struct {
        const char *name, *value;
    } known[] = {
        {"{tool}", words->tool}, {"{needs}", words->needs}, {"{file}", words->file},
        {"{dir}", words->dir},   {"{cwd}", words->cwd},     {"{cache}", words->cache},
    };

    for (size_t i = 0; i < NK_COUNT(known); i++) {
        *out_len = strlen(known[i].name);
        if (strncmp(at, known[i].name, *out_len) == 0)
            return known[i].value;
    }
    return NULL;
}

static void expand(struct nk_buf *out, const struct nk_run_words *words, const char *text)
{
    while (*text) {
        size_t plain = strcspn(text, "{");
        const char *value;
        size_t len;

        nk_buf_add(out, text, plain);
        text += plain;
        if (*text == '\0')
            return;
        value = meaning(words, text, &len);
        if (value)
            nk_buf_add_str(out, value);
        else
            nk_buf_add_char(out, *text);
        text += value ? len : 1;
    }
}

static const char *finish(struct nk_buf *text, struct nk_arena *arena)
{
    const char *out =
        text->failed ? NULL : nk_arena_dup(arena, nk_buf_front(text), nk_buf_left(text));

    nk_buf_fini(text);
    return out;
}

static const char *expand_dup(const struct nk_run_words *words, const char *text,
                              struct nk_arena *arena)
{
    struct nk_buf buf = {0};

    expand(&buf, words, text);
    return finish(&buf, arena);
}

bool nk_run_words_uses(const struct nk_runtime_way *way, const char *word)
{
    for (const char *const *w = way->argv; *w; w++) {
        if (strstr(*w, word))
            return true;
    }
    for (const struct nk_runtime_env *e = way->env; e && e->name; e++) {
        if (strstr(e->value, word))
            return true;
    }
    return false;
}

const char *const *nk_run_words_argv(const struct nk_runtime_way *way,
                                     const struct nk_run_words *words, const char *const *args,
                                     struct nk_arena *arena)
{
    size_t count = count_strings(way->argv), more = count_strings(args), n = 0;
    const char **argv = nk_arena_alloc(arena, (count + more + 1) * sizeof *argv);
    bool placed = false;

    if (!argv)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(way->argv[i], "{args}") == 0 && !placed) {
            for (size_t k = 0; k < more; k++)
                argv[n++] = args[k];
            placed = true;
            continue;
        }
        argv[n] = expand_dup(words, way->argv[i], arena);
        if (!argv[n++])
            return NULL;
    }
    for (size_t k = 0; k < more && !placed; k++)
        argv[n++] = args[k];
    return argv;
}

static const char *variable(const struct nk_runtime_env *e, const struct nk_run_words *words,
                            const char *old, struct nk_arena *arena)
{
    struct nk_buf buf = {0};

    nk_buf_add_str(&buf, e->name);
    nk_buf_add_char(&buf, '=');
    expand(&buf, words, e->value);
    if (old && *old) {
        nk_buf_add_char(&buf, ':');
        nk_buf_add_str(&buf, old);
    }
    return finish(&buf, arena);
}

static size_t index_of(const char **list, size_t count, const char *name)
{
    size_t len = strlen(name), i = 0;

    while (i < count && (strncmp(list[i], name, len) != 0 || list[i][len] != '='))
        i++;
    return i;
}

const char *const *nk_run_words_env(const struct nk_runtime_way *way,
                                    const struct nk_run_words *words, const char *const *envp,
                                    struct nk_arena *arena)
{
    size_t count = count_strings(envp), more = 0;
    const char **list;

    while (way->env && way->env[more].name)
        more++;
    list = nk_arena_alloc(arena, (count + more + 1) * sizeof *list);
    if (!list)
        return NULL;
    memcpy(list, envp, count * sizeof *list);
    for (size_t k = 0; k < more; k++) {
        const struct nk_runtime_env *e = &way->env[k];
        size_t i = index_of(list, count, e->name);
        const char *old = i < count ? list[i] + strlen(e->name) + 1 : NULL;

        if (old && !e->front)
            continue;
        list[i] = variable(e, words, old, arena);
        if (!list[i])
            return NULL;
        count += i == count;
    }
    return list;
}
