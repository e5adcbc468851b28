#include "api/env.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/json.h"
#include "process/userdb.h"

static bool is_name(const char *s)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char later[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

    return *s && strchr(first, *s) && s[strspn(s, later)] == '\0';
}

static int check_env(const struct nk_json *env, struct nk_err *err)
{
    size_t total = 0;

    if (!env)
        return 0;
    if (nk_json_type(env) != NK_JSON_OBJECT)
        return nk_fail(err, NK_BAD_REQUEST, "env must be an object of strings, not %s",
                       nk_json_type_name(env));
    for (const struct nk_json *v = nk_json_first(env); v; v = nk_json_next(v)) {
        const char *key = nk_json_key(v);
        size_t len;

        if (!is_name(key))
            return nk_fail(err, NK_BAD_REQUEST, "env: \"%s\" is not a name", key);
        if (nk_json_type(v) != NK_JSON_STRING)
            return nk_fail(err, NK_BAD_REQUEST, "env.%s must be a string, not %s", key,
                           nk_json_type_name(v));
        len = strlen(nk_json_str(v));
        if (len > NK_ENV_VALUE_MAX)
            return nk_fail(err, NK_BAD_REQUEST, "env.%s is longer than %u bytes", key,
                           NK_ENV_VALUE_MAX);
        total += strlen(key) + len + 2;
    }
    if (total > NK_ENV_TOTAL_MAX)
        return nk_fail(err, NK_BAD_REQUEST, "env is larger than %u bytes in all", NK_ENV_TOTAL_MAX);
    return 0;
}

static size_t count_strings(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

static char *join(struct nk_arena *arena, const char *key, const char *value)
{
    size_t key_len = strlen(key);
    size_t len = strlen(value);
    char *text = nk_arena_alloc(arena, key_len + len + 2);

    if (!text)
        return NULL;
    memcpy(text, key, key_len);
    text[key_len] = '=';
    memcpy(text + key_len + 1, value, len);
    return text;
}

static bool sets(const char *entry, const char *key)
{
    size_t len = strlen(key);

    return strncmp(entry, key, len) == 0 && entry[len] == '=';
}

/* Replaces the entry of that name among the first `count`, or adds it after them. */
static int put(const char **list, size_t *count, size_t search, char *entry, const char *key)
{
    if (!entry)
        return -1;
    for (size_t i = 0; i < search; i++) {
        if (sets(list[i], key)) {
            list[i] = entry;
            return 0;
        }
    }
    list[(*count)++] = entry;
    return 0;
}

int nk_env_build(const char *const *base, const struct nk_json *env, struct nk_arena *arena,
                 const char *const **out, struct nk_err *err)
{
    size_t base_count = count_strings(base);
    size_t count = base_count;
    const char **list;

    if (check_env(env, err) < 0)
        return -1;
    list = nk_arena_alloc(arena, (base_count + (env ? nk_json_count(env) : 0) + 1) * sizeof *list);
    if (!list)
        return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    if (base_count)
        memcpy(list, base, base_count * sizeof *list);
    for (const struct nk_json *v = env ? nk_json_first(env) : NULL; v; v = nk_json_next(v)) {
        const char *key = nk_json_key(v);

        if (put(list, &count, base_count, join(arena, key, nk_json_str(v)), key) < 0)
            return nk_fail(err, NK_OVERLOADED, "no memory for this request");
    }
    *out = list;
    return 0;
}

const char *const *nk_env_copy(const char *const *base, struct nk_arena *arena)
{
    size_t count = count_strings(base);
    const char **list = nk_arena_alloc(arena, (count + 1) * sizeof *list);

    for (size_t i = 0; list && i < count; i++) {
        list[i] = nk_arena_str(arena, base[i]);
        if (!list[i])
            return NULL;
    }
    return list;
}

/* The very string of the base list: not replaced by the request. */
static bool is_base(const char *const *base, const char *entry)
{
    for (; base && *base; base++) {
        if (*base == entry)
            return true;
    }
    return false;
}

const char *const *nk_env_as(const char *const *envp, const char *const *base,
                             const struct nk_user *user, struct nk_arena *arena)
{
    static const char *const keys[] = {"HOME", "USER", "LOGNAME", "SHELL"};
    const char *const values[] = {user->home, user->name, user->name, user->shell};
    size_t count = count_strings(envp);
    const char **list = nk_arena_alloc(arena, (count + NK_COUNT(keys) + 1) * sizeof *list);

    if (!list)
        return NULL;
    memcpy(list, envp, count * sizeof *list);
    for (size_t k = 0; k < NK_COUNT(keys); k++) {
        size_t i = 0;

        while (i < count && !sets(list[i], keys[k]))
            i++;
        if (i < count && !is_base(base, list[i]))
            continue;
        if (put(list, &count, count, join(arena, keys[k], values[k]), keys[k]) < 0)
            return NULL;
    }
    return list;
}

const char *const *nk_env_home(const char *const *base, const struct nk_user *user, const char *tmp,
                               struct nk_arena *arena)
{
    static const char *const keys[] = {"HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"};
    const char *const values[] = {user->home, user->name, user->name, user->shell, tmp};
    size_t given = count_strings(base);
    size_t count = given;
    const char **list = nk_arena_alloc(arena, (count + NK_COUNT(keys) + 1) * sizeof *list);

    if (!list)
        return NULL;
    if (given)
        memcpy(list, base, given * sizeof *list);
    for (size_t k = 0; k < NK_COUNT(keys); k++)
        if (put(list, &count, given, join(arena, keys[k], values[k]), keys[k]) < 0)
            return NULL;
    return list;
}

const char *const *nk_env_on_terminal(const char *const *envp, struct nk_arena *arena)
{
    static const struct {
        const char *key, *entry;
    } defaults[] = {
        {"TERM", "TERM=xterm-256color"},
        {"COLORTERM", "COLORTERM=truecolor"},
        {"LANG", "LANG=C.UTF-8"},
    };
    size_t given = count_strings(envp);
    size_t count = given;
    const char **list = nk_arena_alloc(arena, (count + NK_COUNT(defaults) + 1) * sizeof *list);

    if (!list)
        return NULL;
    memcpy(list, envp, count * sizeof *list);
    for (size_t k = 0; k < NK_COUNT(defaults); k++) {
        size_t i = 0;

        while (i < given && !sets(list[i], defaults[k].key))
            i++;
        if (i == given)
            list[count++] = defaults[k].entry;
    }
    return list;
}
