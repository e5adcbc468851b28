#include "code/runtime_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd_io.h"
#include "base/json.h"
#include "base/scope.h"

#define NAME_MAX_LEN 64
#define WORDS_MAX 64

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

static int no_memory(struct nk_err *err)
{
    return nk_fail(err, NK_OVERLOADED, "no memory for runtimes");
}

/* A name of a language: it stands in requests and in the capabilities. */
static int check_name(const char *key, const char *name, struct nk_err *err)
{
    size_t len = strlen(name);

    if (len == 0 || len > NAME_MAX_LEN || !strchr(letters, name[0]) ||
        name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+#-")])
        return nk_fail(err, NK_BAD_REQUEST,
                       "%s must be 1 to %d letters, digits and ._+#-, not \"%.80s\"", key,
                       NAME_MAX_LEN, name);
    return 0;
}

/* Only the words that stand for something. */
static int check_words(const char *key, const char *text, struct nk_err *err)
{
    static const char *const known[] = {"{tool}", "{needs}", "{file}", "{dir}",
                                        "{cwd}",  "{cache}", "{args}"};

    for (const char *at = strchr(text, '{'); at; at = strchr(at + 1, '{')) {
        const char *end = at + 1 + strspn(at + 1, "abcdefghijklmnopqrstuvwxyz");
        bool found = *end != '}' || end == at + 1;

        for (size_t i = 0; i < NK_COUNT(known) && !found; i++)
            found = strncmp(at, known[i], strlen(known[i])) == 0;
        if (!found)
            return nk_fail(err, NK_BAD_REQUEST, "%s: %.*s stands for nothing", key,
                           (int)(end - at + 1), at);
    }
    return 0;
}

static int read_list(const struct nk_json *object, const char *key, size_t max,
                     struct nk_arena *arena, const char *const **out, struct nk_err *err)
{
    const struct nk_json *list = nk_json_get(object, key);
    const char **words;
    size_t n = 0;

    if (list && nk_json_type(list) != NK_JSON_ARRAY)
        return nk_fail(err, NK_BAD_REQUEST, "%s must be a list of strings", key);
    if (list && nk_json_count(list) > max)
        return nk_fail(err, NK_BAD_REQUEST, "%s has more than %zu words", key, max);
    words = nk_arena_alloc(arena, ((list ? nk_json_count(list) : 0) + 1) * sizeof *words);
    if (!words)
        return no_memory(err);
    for (const struct nk_json *v = list ? nk_json_first(list) : NULL; v; v = nk_json_next(v)) {
        if (nk_json_type(v) != NK_JSON_STRING)
            return nk_fail(err, NK_BAD_REQUEST, "%s must be a list of strings", key);
        words[n] = nk_arena_str(arena, nk_json_str(v));
        if (!words[n++])
            return no_memory(err);
    }
    *out = words;
    return 0;
}

static int read_text(const struct nk_json *object, const char *key, struct nk_arena *arena,
                     const char **out, struct nk_err *err)
{
    const char *text = NULL;

    if (nk_json_read_str(object, key, &text, err) < 0)
        return -1;
    if (!text)
        return 0;
    *out = nk_arena_str(arena, text);
    return *out ? 0 : no_memory(err);
}

static int read_tools(const struct nk_json *object, struct nk_arena *arena,
                      struct nk_runtime_way *way, struct nk_err *err)
{
    const struct nk_json *v = nk_json_get(object, "tool");
    const char *const *list = NULL;

    if (v && nk_json_type(v) == NK_JSON_STRING) {
        if (read_text(object, "tool", arena, &way->tools[0], err) < 0)
            return -1;
    } else if (read_list(object, "tool", NK_COUNT(way->tools), arena, &list, err) < 0) {
        return -1;
    }
    for (size_t i = 0; list && list[i]; i++)
        way->tools[i] = list[i];
    for (size_t i = 0; i < NK_COUNT(way->tools) && way->tools[i]; i++) {
        if (way->tools[i][0] == '\0')
            return nk_fail(err, NK_BAD_REQUEST, "tool must not be empty");
    }
    return way->tools[0] ? 0 : nk_fail(err, NK_BAD_REQUEST, "tool is missing");
}

static int read_env(const struct nk_json *object, struct nk_arena *arena,
                    struct nk_runtime_way *way, struct nk_err *err)
{
    const struct nk_json *env = nk_json_get(object, "env");
    struct nk_runtime_env *list;
    size_t n = 0;

    if (!env)
        return 0;
    if (nk_json_type(env) != NK_JSON_OBJECT)
        return nk_fail(err, NK_BAD_REQUEST, "env must be an object of strings");
    list = nk_arena_alloc(arena, (nk_json_count(env) + 1) * sizeof *list);
    if (!list)
        return no_memory(err);
    for (const struct nk_json *v = nk_json_first(env); v; v = nk_json_next(v)) {
        const char *key = nk_json_key(v);

        if (nk_json_type(v) != NK_JSON_STRING || *key == '\0' || strchr(key, '='))
            return nk_fail(err, NK_BAD_REQUEST, "env.%s must be a name and a string", key);
        if (check_words("env", nk_json_str(v), err) < 0)
            return -1;
        list[n].name = nk_arena_str(arena, key);
        list[n].value = nk_arena_str(arena, nk_json_str(v));
        if (!list[n].name || !list[n].value)
            return no_memory(err);
        n++;
    }
    way->env = list;
    return 0;
}

static int read_argv(const struct nk_json *object, struct nk_arena *arena,
                     struct nk_runtime_way *way, struct nk_err *err)
{
    if (read_list(object, "argv", WORDS_MAX, arena, &way->argv, err) < 0)
        return -1;
    if (!way->argv[0] || way->argv[0][0] == '\0')
        return nk_fail(err, NK_BAD_REQUEST, "argv is missing or empty");
    for (const char *const *word = way->argv; *word; word++) {
        if (check_words("argv", *word, err) < 0)
            return -1;
    }
    return 0;
}

static int read_file_name(const struct nk_json *object, struct nk_arena *arena,
                          struct nk_runtime_way *way, struct nk_err *err)
{
    way->file = "main-code";
    if (read_text(object, "file", arena, &way->file, err) < 0)
        return -1;
    if (way->file[0] == '\0' || way->file[0] == '.' || strchr(way->file, '/') ||
        strlen(way->file) > NAME_MAX_LEN)
        return nk_fail(err, NK_BAD_REQUEST, "file must be a plain file name");
    return 0;
}

static int read_way(const struct nk_json *object, struct nk_arena *arena,
                    struct nk_runtime_way *way, struct nk_err *err)
{
    if (read_tools(object, arena, way, err) < 0 || read_argv(object, arena, way, err) < 0 ||
        read_file_name(object, arena, way, err) < 0)
        return -1;
    if (read_text(object, "needs", arena, &way->needs, err) < 0 ||
        read_text(object, "version", arena, &way->version, err) < 0)
        return -1;
    return read_env(object, arena, way, err);
}

static int read_names(const struct nk_json *object, struct nk_arena *arena, struct nk_runtime *rt,
                      struct nk_err *err)
{
    if (read_text(object, "id", arena, &rt->id, err) < 0)
        return -1;
    if (!rt->id)
        return nk_fail(err, NK_BAD_REQUEST, "id is missing");
    if (check_name("id", rt->id, err) < 0 ||
        read_list(object, "aliases", WORDS_MAX, arena, &rt->aliases, err) < 0)
        return -1;
    for (const char *const *alias = rt->aliases; *alias; alias++) {
        if (check_name("aliases", *alias, err) < 0)
            return -1;
    }
    return 0;
}

static int read_object(const struct nk_json *object, struct nk_arena *arena, struct nk_runtime *out,
                       struct nk_err *err)
{
    static const char *const names[] = {"id",   "aliases", "tool",  "argv",
                                        "file", "env",     "needs", "version"};
    struct nk_runtime_way *way = nk_arena_alloc(arena, sizeof *way);

    if (!way)
        return no_memory(err);
    if (nk_json_type(object) != NK_JSON_OBJECT)
        return nk_fail(err, NK_BAD_REQUEST, "must be an object");
    if (nk_json_only(object, names, NK_COUNT(names), err) < 0 ||
        read_names(object, arena, out, err) < 0 || read_way(object, arena, way, err) < 0)
        return -1;
    out->ways = way;
    out->way_count = 1;
    return 0;
}

int nk_runtime_file_read(const char *name, const void *text, size_t len, struct nk_arena *arena,
                         struct nk_runtime *out, struct nk_err *err)
{
    struct nk_json *root = NULL;
    struct nk_runtime rt = {0};
    struct nk_err why;
    int rc = nk_json_parse(text, len, &root, &why);

    if (rc == 0)
        rc = read_object(root, arena, &rt, &why);
    nk_json_free(root);
    if (rc < 0)
        return nk_fail(err, why.code, "runtime %s: %s", name, why.msg);
    *out = rt;
    return 0;
}

static int read_file(int dir, const char *name, struct nk_runtime_files *files, struct nk_err *err)
{
    nk_auto_fd int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    nk_auto_free char *text = malloc(NK_RUNTIME_FILE_MAX + 1);
    ssize_t n;

    if (!text)
        return no_memory(err);
    n = fd < 0 ? -errno : nk_fd_io_read(fd, text, NK_RUNTIME_FILE_MAX + 1);
    if (n < 0)
        return nk_fail_sys(err, (int)-n, "runtime %s", name);
    if (n > (ssize_t)NK_RUNTIME_FILE_MAX || files->count == NK_RUNTIME_FILES_MAX)
        return nk_fail(err, NK_TOO_LARGE, "runtime %s: too large, or one too many", name);
    if (nk_runtime_file_read(name, text, (size_t)n, &files->arena, &files->item[files->count],
                             err) < 0)
        return -1;
    files->count++;
    return 0;
}

static int is_description(const struct dirent *e)
{
    size_t len = strlen(e->d_name);

    return e->d_name[0] != '.' && len > 5 && strcmp(e->d_name + len - 5, ".json") == 0;
}

static int read_list_of(const char *dir, struct dirent **list, int count,
                        struct nk_runtime_files *out, struct nk_err *err)
{
    nk_auto_fd int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return nk_fail_sys(err, errno, "%s", dir);
    out->item = nk_arena_alloc(&out->arena, NK_RUNTIME_FILES_MAX * sizeof *out->item);
    if (!out->item)
        return no_memory(err);
    for (int i = 0; i < count; i++) {
        if (read_file(fd, list[i]->d_name, out, err) < 0)
            return -1;
    }
    return 0;
}

int nk_runtime_file_read_all(const char *dir, struct nk_runtime_files *out, struct nk_err *err)
{
    struct dirent **list = NULL;
    int count = scandir(dir, &list, is_description, alphasort);
    int rc = 0;

    if (count < 0 && errno == ENOENT)
        return 0;
    if (count < 0)
        return nk_fail_sys(err, errno, "cannot read the runtimes in %s", dir);
    if (count > 0)
        rc = read_list_of(dir, list, count, out, err);
    for (int i = 0; i < count; i++)
        free(list[i]);
    free(list);
    return rc;
}

void nk_runtime_file_fini(struct nk_runtime_files *files)
{
    nk_arena_fini(&files->arena);
}
