#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/secret.h"
#include "config_check.h"
#include "config_file.h"
#include "config_parse.h"

enum source { FROM_DEFAULT, FROM_FILE, FROM_VARIABLE, FROM_FLAG };

struct loader {
    struct nk_config *c;
    enum source now;
    unsigned char source[NK_CONFIG_ROWS_MAX]; /* where each option was last set */
};

const char *nk_config_env(const char *name)
{
    return getenv(name);
}

/* A stronger source replaces what a weaker one had put into a list. */
static void enter(struct loader *l, const struct nk_config_row *row)
{
    size_t i = (size_t)(row - nk_config_table);

    if (l->source[i] != l->now)
        nk_config_parse_clear(l->c, row);
    l->source[i] = (unsigned char)l->now;
}

static enum source source_of(const struct loader *l, const char *name)
{
    return l->source[nk_config_table_find(name, strlen(name)) - nk_config_table];
}

static int load_defaults(struct loader *l, struct nk_err *err)
{
    l->c->token_fd = -1;
    l->c->log_json = -1;
    for (size_t i = 0; i < nk_config_table_count; i++) {
        const struct nk_config_row *row = &nk_config_table[i];

        if (row->fallback && nk_config_parse_split(l->c, row, row->fallback, row->name, err) < 0)
            return -1;
    }
    return 0;
}

/* What Kubernetes sets in every pod of a namespace that has a service of our name, and what the
 * client verbs read. */
static bool is_foreign(const char *name)
{
    static const char *const prefixes[] = {"NOOKD_SERVICE_", "NOOKD_PORT_"};
    static const char *const names[] = {"NOOKD_PORT", "NOOKD_URL", "NOOKD_TOKEN"};

    for (size_t i = 0; i < NK_COUNT(prefixes); i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    for (size_t i = 0; i < NK_COUNT(names); i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static const struct nk_config_row *find_variable(const char *name)
{
    char variable[NK_CONFIG_VARIABLE_MAX];

    for (size_t i = 0; i < nk_config_table_count; i++) {
        nk_config_table_variable(&nk_config_table[i], variable);
        if (strcmp(variable, name) == 0)
            return &nk_config_table[i];
    }
    return NULL;
}

static int load_variable(struct loader *l, const char *name, const char *value, struct nk_err *err)
{
    const struct nk_config_row *row = find_variable(name);

    if (is_foreign(name))
        return 0;
    if (!row)
        return nk_fail(err, NK_BAD_REQUEST, "%.100s: no such option", name);
    enter(l, row);
    return nk_config_parse_split(l->c, row, value, name, err);
}

static int load_variables(struct loader *l, struct nk_err *err)
{
    l->now = FROM_VARIABLE;
    for (char **e = environ; e && *e; e++) {
        size_t len = strcspn(*e, "=");
        nk_auto_free char *name = NULL;

        if (strncmp(*e, "NOOKD_", 6) != 0 || (*e)[len] != '=')
            continue;
        name = strndup(*e, len);
        if (!name)
            return nk_fail(err, NK_OVERLOADED, "no memory");
        if (load_variable(l, name, *e + len + 1, err) < 0)
            return -1;
    }
    return 0;
}

/* One flag at argv[i] with its value there or in argv[i + 1]. */
struct flag {
    const struct nk_config_row *row;
    const char *value;
    char where[NK_CONFIG_VARIABLE_MAX]; /* "--max-output" */
    int used;                           /* arguments taken */
};

static int read_flag(char **argv, int left, struct flag *out, struct nk_err *err)
{
    const char *arg = argv[0];
    size_t len = strcspn(arg, "=");

    if (strncmp(arg, "--", 2) != 0)
        return nk_fail(err, NK_BAD_REQUEST, "%.100s: unexpected; a program goes after --", arg);
    out->row = nk_config_table_find(arg + 2, len - 2);
    if (!out->row)
        return nk_fail(err, NK_BAD_REQUEST, "%.*s: no such option", len > 100 ? 100 : (int)len,
                       arg);
    memcpy(out->where, arg, len);
    out->where[len] = '\0';
    out->used = 1;
    if (arg[len] == '=') {
        out->value = arg + len + 1;
        return 0;
    }
    if (out->row->type == NK_CONFIG_BOOL) {
        out->value = "true";
        return 0;
    }
    if (left < 2)
        return nk_fail(err, NK_BAD_REQUEST, "%s: needs a value", out->where);
    out->value = argv[1];
    out->used = 2;
    return 0;
}

/* Each flag before "--" to `set`. The program behind it is what is left. */
static int each_flag(struct loader *l, int argc, char **argv,
                     int (*set)(struct loader *l, const struct flag *f, struct nk_err *err),
                     struct nk_err *err)
{
    for (int i = 0; i < argc;) {
        struct flag f = {0};

        if (strcmp(argv[i], "--") == 0) {
            if (i + 1 == argc)
                return nk_fail(err, NK_BAD_REQUEST, "--: a program must follow");
            l->c->program = argv + i + 1;
            return 0;
        }
        if (read_flag(argv + i, argc - i, &f, err) < 0 || set(l, &f, err) < 0)
            return -1;
        i += f.used;
    }
    return 0;
}

static int set_flag(struct loader *l, const struct flag *f, struct nk_err *err)
{
    enter(l, f->row);
    return nk_config_parse_set(l->c, f->row, f->value, f->where, err);
}

static int set_from_file(void *ctx, const struct nk_config_row *row, const char *text,
                         const char *where, struct nk_err *err)
{
    struct loader *l = ctx;

    enter(l, row);
    return nk_config_parse_set(l->c, row, text, where, err);
}

static int find_config_flag(struct loader *l, const struct flag *f, struct nk_err *err)
{
    (void)err;
    if (f->row && f->row->type == NK_CONFIG_FILE)
        l->c->config_file = f->value;
    return 0;
}

static int load_file(struct loader *l, int argc, char **argv, struct nk_err *err)
{
    l->now = FROM_FILE;
    l->c->config_file = nk_config_env("NOOKD_CONFIG");
    if (each_flag(l, argc, argv, find_config_flag, err) < 0)
        return -1;
    if (!l->c->config_file)
        return 0;
    return nk_config_file_read(l->c->config_file, set_from_file, l, err);
}

/* The value is copied, then overwritten where /proc/self/environ shows it. */
static int take_token(struct nk_config *c, struct nk_err *err)
{
    static const char name[] = "NOOKD_TOKEN=";
    const size_t len = sizeof name - 1;

    for (char **e = environ; e && *e; e++) {
        char *value = *e + len;

        if (strncmp(*e, name, len) != 0)
            continue;
        c->token = strdup(value);
        nk_secret_wipe(value, strlen(value));
        (void)unsetenv("NOOKD_TOKEN");
        if (!c->token)
            return nk_fail(err, NK_OVERLOADED, "NOOKD_TOKEN: no memory");
        if (!*c->token)
            return nk_fail(err, NK_BAD_REQUEST, "NOOKD_TOKEN: is empty");
        return 0;
    }
    return 0;
}

/* A token has one origin: the strongest source that names one. */
static int choose_token(struct loader *l, struct nk_err *err)
{
    struct nk_config *c = l->c;
    enum source file = source_of(l, "token-file");
    enum source fd = c->token_fd >= 0 ? source_of(l, "token-fd") : FROM_DEFAULT;
    enum source variable = c->token ? FROM_VARIABLE : FROM_DEFAULT;
    enum source best = file > fd ? file : fd;

    best = variable > best ? variable : best;
    if (best == FROM_DEFAULT)
        return 0;
    if ((file == best) + (fd == best) + (variable == best) > 1)
        return nk_fail(err, NK_BAD_REQUEST,
                       "--token-file: only one of it, --token-fd and "
                       "NOOKD_TOKEN may be given");
    c->token_given = true;
    if (fd != best)
        c->token_fd = -1;
    if (variable != best && c->token) {
        nk_secret_wipe(c->token, strlen(c->token));
        free(c->token);
        c->token = NULL;
    }
    return 0;
}

/* Defaults that depend on other options or on the machine. */
static int finish(struct loader *l, struct nk_err *err)
{
    struct nk_config *c = l->c;
    char host[65] = "";

    if (source_of(l, "nproc") == FROM_DEFAULT)
        c->nproc = c->max_processes;
    if (!c->id) {
        if (gethostname(host, sizeof host - 1) < 0 || !nk_config_check_id(host))
            memcpy(host, "sandbox", sizeof "sandbox");
        c->id = strdup(host);
        if (!c->id)
            return nk_fail(err, NK_OVERLOADED, "no memory");
    }
    if (choose_token(l, err) < 0)
        return -1;
    return nk_config_check_all(c, err);
}

static int load(struct loader *l, int argc, char **argv, struct nk_err *err)
{
    /* The token first: it must not stay readable when an error ends the start. */
    if (take_token(l->c, err) < 0 || load_defaults(l, err) < 0 || load_file(l, argc, argv, err) < 0)
        return -1;
    if (load_variables(l, err) < 0)
        return -1;
    l->now = FROM_FLAG;
    if (each_flag(l, argc, argv, set_flag, err) < 0)
        return -1;
    return finish(l, err);
}

int nk_config_load(int argc, char **argv, struct nk_config *out, struct nk_err *err)
{
    struct nk_config c = {0};
    struct loader l = {.c = &c};

    if (load(&l, argc, argv, err) < 0) {
        nk_config_fini(&c);
        return -1;
    }
    *out = c;
    return 0;
}

void nk_config_fini(struct nk_config *c)
{
    for (size_t i = 0; i < nk_config_table_count; i++) {
        const struct nk_config_row *row = &nk_config_table[i];

        nk_config_parse_clear(c, row);
        if (row->type == NK_CONFIG_TEXT)
            free(*(char **)nk_config_table_field(c, row));
    }
    if (c->token)
        nk_secret_wipe(c->token, strlen(c->token));
    free(c->token);
    *c = (struct nk_config){.token_fd = -1};
}
