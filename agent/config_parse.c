#include "config_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "config_check.h"

/* Whole digits at *text, which moves behind them. -EINVAL: none; -ERANGE: too many. */
static int take_number(const char **text, uint64_t *out)
{
    const char *p = *text;
    uint64_t n = 0;

    if (*p < '0' || *p > '9')
        return -EINVAL;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *p - '0', &n))
            return -ERANGE;
    }
    *text = p;
    *out = n;
    return 0;
}

static int within(const struct nk_config_row *row, uint64_t n)
{
    return n < row->min || n > row->max ? -ERANGE : 0;
}

static int set_bool(void *field, const struct nk_config_row *row, const char *text)
{
    bool *out = field;

    (void)row;
    if (strcmp(text, "true") == 0 || strcmp(text, "1") == 0)
        *out = true;
    else if (strcmp(text, "false") == 0 || strcmp(text, "0") == 0)
        *out = false;
    else
        return -EINVAL;
    return 0;
}

static int set_text(void *field, const struct nk_config_row *row, const char *text)
{
    char **out = field;
    char *copy = NULL;

    if (!row->none || strcmp(text, "none") != 0) {
        if (!*text || (row->valid && !row->valid(text)))
            return -EINVAL;
        copy = strdup(text);
        if (!copy)
            return -ENOMEM;
    }
    free(*out);
    *out = copy;
    return 0;
}

static int set_list(void *field, const struct nk_config_row *row, const char *text)
{
    struct nk_strings *list = field;
    char **grown;

    if (!*text || (row->valid && !row->valid(text)))
        return -EINVAL;
    grown = realloc(list->item, (list->count + 2) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    list->item = grown;
    grown[list->count] = strdup(text);
    if (!grown[list->count])
        return -ENOMEM;
    grown[++list->count] = NULL;
    return 0;
}

static int set_count(void *field, const struct nk_config_row *row, const char *text)
{
    uint64_t n = 0;
    int rc = take_number(&text, &n);

    if (rc == 0 && *text)
        rc = -EINVAL;
    if (rc == 0)
        rc = within(row, n);
    if (rc == 0)
        *(uint64_t *)field = n;
    return rc;
}

static int set_bytes(void *field, const struct nk_config_row *row, const char *text)
{
    static const char units[] = "KMG";
    uint64_t n = 0;
    int rc = take_number(&text, &n);

    if (rc == 0 && *text) {
        const char *unit = strchr(units, *text);

        if (!unit || (text[1] && strcmp(text + 1, "iB") != 0))
            return -EINVAL;
        if (__builtin_mul_overflow(n, 1ull << (10 * (unit - units + 1)), &n))
            return -ERANGE;
    }
    if (rc == 0)
        rc = within(row, n);
    if (rc == 0)
        *(uint64_t *)field = n;
    return rc;
}

/* Seconds with an optional fraction; what is below a millisecond counts as one. */
static int set_time(void *field, const struct nk_config_row *row, const char *text)
{
    uint64_t ms = 0;
    uint64_t unit = 100;
    int rc = take_number(&text, &ms);

    if (rc < 0 || __builtin_mul_overflow(ms, 1000, &ms))
        return rc < 0 ? rc : -ERANGE;
    if (*text == '.' && text[1]) {
        bool rest = false;

        for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10) {
            ms += unit * (uint64_t)(*text - '0');
            rest = rest || (unit == 0 && *text != '0');
        }
        ms += rest;
    }
    if (*text)
        return -EINVAL;
    rc = within(row, ms);
    if (rc == 0)
        *(uint64_t *)field = ms;
    return rc;
}

static int set_range(void *field, const struct nk_config_row *row, const char *text)
{
    uint64_t *out = field;
    uint64_t first = 0;
    uint64_t last = 0;
    int rc = take_number(&text, &first);

    if (rc == 0 && *text++ != '-')
        return -EINVAL;
    if (rc == 0)
        rc = take_number(&text, &last);
    if (rc == 0 && (*text || first > last))
        return -EINVAL;
    if (rc == 0 && (within(row, first) < 0 || within(row, last) < 0))
        return -ERANGE;
    if (rc < 0)
        return rc;
    out[0] = first;
    out[1] = last;
    return 0;
}

/* The index of the `len` bytes at `text` among "a|b|c", or -EINVAL. */
static int choice(const char *choices, const char *text, size_t len)
{
    for (int i = 0;; i++) {
        size_t n = strcspn(choices, "|");

        if (n == len && memcmp(choices, text, n) == 0)
            return i;
        if (choices[n] == '\0')
            return -EINVAL;
        choices += n + 1;
    }
}

static int set_either(void *field, const struct nk_config_row *row, const char *text)
{
    int i = choice(row->choices, text, strlen(text));

    if (i < 0)
        return i;
    *(bool *)field = i == 1;
    return 0;
}

static int set_choice(void *field, const struct nk_config_row *row, const char *text)
{
    int i = choice(row->choices, text, strlen(text));

    if (i < 0)
        return i;
    *(int *)field = i;
    return 0;
}

static int set_mask(void *field, const struct nk_config_row *row, const char *text)
{
    uint32_t mask = 0;

    for (;;) {
        size_t len = strcspn(text, ",");
        int bit = choice(row->choices, text, len);

        if (bit < 0)
            return bit;
        mask |= 1u << bit;
        if (text[len] == '\0')
            break;
        text += len + 1;
    }
    *(uint32_t *)field = mask;
    return 0;
}

static int set_signal(void *field, const struct nk_config_row *row, const char *text)
{
    int signo = nk_config_check_signal(text, strlen(text));

    (void)row;
    if (signo < 0)
        return -EINVAL;
    *(int *)field = signo;
    return 0;
}

static int set_fd(void *field, const struct nk_config_row *row, const char *text)
{
    uint64_t n = 0;
    int rc = set_count(&n, row, text);

    if (rc == 0)
        *(int *)field = (int)n;
    return rc;
}

static int set_file(void *field, const struct nk_config_row *row, const char *text)
{
    (void)field;
    (void)row;
    return *text ? 0 : -EINVAL;
}

typedef int (*setter_fn)(void *field, const struct nk_config_row *row, const char *text);

static const setter_fn setters[] = {
    [NK_CONFIG_BOOL] = set_bool,   [NK_CONFIG_TEXT] = set_text,     [NK_CONFIG_LIST] = set_list,
    [NK_CONFIG_COUNT] = set_count, [NK_CONFIG_BYTES] = set_bytes,   [NK_CONFIG_TIME] = set_time,
    [NK_CONFIG_RANGE] = set_range, [NK_CONFIG_EITHER] = set_either, [NK_CONFIG_CHOICE] = set_choice,
    [NK_CONFIG_MASK] = set_mask,   [NK_CONFIG_SIGNAL] = set_signal, [NK_CONFIG_FD] = set_fd,
    [NK_CONFIG_FILE] = set_file,
};

static const char *must_be(const struct nk_config_row *row)
{
    switch (row->type) {
    case NK_CONFIG_BOOL:
        return "true or false";
    case NK_CONFIG_BYTES:
        return "a number of bytes (KiB, MiB or GiB may follow)";
    case NK_CONFIG_TIME:
        return "a number of seconds";
    case NK_CONFIG_COUNT:
    case NK_CONFIG_FD:
        return "a whole number";
    case NK_CONFIG_SIGNAL:
        return "a signal";
    default:
        return row->choices ? row->choices : row->arg;
    }
}

static int complain(const struct nk_config_row *row, const char *text, const char *where, int rc,
                    struct nk_err *err)
{
    const char *unit = row->type == NK_CONFIG_TIME ? " milliseconds" : "";

    if (rc == -ENOMEM)
        return nk_fail(err, NK_OVERLOADED, "%s: no memory", where);
    if (rc == -ERANGE)
        return nk_fail(err, NK_BAD_REQUEST, "%s: %.40s is out of bounds (%llu to %llu%s)", where,
                       text, (unsigned long long)row->min, (unsigned long long)row->max, unit);
    return nk_fail(err, NK_BAD_REQUEST, "%s: \"%.80s\" is not %s%s", where, text, must_be(row),
                   row->none ? " or none" : "");
}

/* "none", where it has no number of its own. */
static bool set_none(void *field, const struct nk_config_row *row, const char *text)
{
    if (!row->none || strcmp(text, "none") != 0 || row->type == NK_CONFIG_TEXT)
        return false;
    if (row->type == NK_CONFIG_FD)
        *(int *)field = -1;
    else if (row->type == NK_CONFIG_SIGNAL)
        *(int *)field = 0;
    else if (row->type == NK_CONFIG_MASK)
        *(uint32_t *)field = 0;
    else
        *(uint64_t *)field = 0;
    return true;
}

int nk_config_parse_set(struct nk_config *c, const struct nk_config_row *row, const char *text,
                        const char *where, struct nk_err *err)
{
    void *field = nk_config_table_field(c, row);
    int rc;

    if (set_none(field, row, text))
        return 0;
    rc = setters[row->type](field, row, text);
    return rc < 0 ? complain(row, text, where, rc, err) : 0;
}

int nk_config_parse_split(struct nk_config *c, const struct nk_config_row *row, const char *text,
                          const char *where, struct nk_err *err)
{
    char sep[2] = {row->sep ? row->sep : ',', '\0'};

    if (row->type != NK_CONFIG_LIST)
        return nk_config_parse_set(c, row, text, where, err);
    while (*text) {
        size_t len = strcspn(text, sep);
        nk_auto_free char *part = strndup(text, len);

        if (!part)
            return nk_fail(err, NK_OVERLOADED, "%s: no memory", where);
        if (nk_config_parse_set(c, row, part, where, err) < 0)
            return -1;
        text += len + (text[len] != '\0');
    }
    return 0;
}

void nk_config_parse_clear(struct nk_config *c, const struct nk_config_row *row)
{
    struct nk_strings *list = nk_config_table_field(c, row);

    if (row->type != NK_CONFIG_LIST)
        return;
    for (size_t i = 0; i < list->count; i++)
        free(list->item[i]);
    free(list->item);
    *list = (struct nk_strings){0};
}
