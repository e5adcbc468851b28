#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_out.h"
#include "config_table.h"

static const char usage[] =
    "usage: nookd serve [options] [-- PROGRAM ARGS...]\n"
    "       nookd VERB [options] [arguments]       (the verbs stand below)\n"
    "       nookd --help | --version | --print-routes | --print-config\n"
    "\n"
    "nookd serve is the agent inside a sandbox. Without a verb, as process 1, it is serve. With a\n"
    "PROGRAM it is also that program's init.\n"
    "\n"
    "Every option has a variable (--max-output: NOOKD_MAX_OUTPUT). A flag wins over a variable, a\n"
    "variable over the --config file.\n"
    "\n"
    "options of serve:\n";

static void print_row(const struct nk_config_row *row)
{
    const char *arg = row->arg;
    char left[96];

    if (!arg)
        arg = row->choices ? row->choices : row->type == NK_CONFIG_SIGNAL ? "SIGNAL" : "";
    if (row->type == NK_CONFIG_MASK)
        arg = "NAME,...";
    (void)snprintf(left, sizeof left, "--%s%s%s", row->name, *arg ? " " : "", arg);
    (void)printf(strlen(left) > 32 ? "  %s\n%36s%s" : "  %-32s%.0s  %s", left, "", row->help);
    if (row->type == NK_CONFIG_MASK)
        (void)printf(": %s", row->choices);
    if (row->fallback)
        (void)printf(" (%s)", row->fallback);
    (void)printf("\n");
}

void nk_config_print_help(void)
{
    (void)fputs(usage, stdout);
    for (size_t i = 0; i < nk_config_table_count; i++)
        print_row(&nk_config_table[i]);
    (void)fputs("\nverbs:\n", stdout);
    (void)fflush(stdout); /* the verbs' own lines are written past stdio */
}

static void put_choice(struct nk_json_out *o, const struct nk_config_row *row, int index)
{
    const char *name = row->choices;

    if (index < 0) {
        nk_json_out_null(o, row->name);
        return;
    }
    for (; index > 0; index--)
        name += strcspn(name, "|") + 1;
    nk_json_out_strn(o, row->name, name, strcspn(name, "|"));
}

static void put_mask(struct nk_json_out *o, const struct nk_config_row *row, uint32_t mask)
{
    const char *name = row->choices;
    char text[128] = "";
    size_t len = 0;

    for (; mask; mask >>= 1) {
        size_t n = strcspn(name, "|");

        if (mask & 1 && len + n + 2 < sizeof text) {
            if (len > 0)
                text[len++] = ',';
            memcpy(text + len, name, n);
            len += n;
        }
        name += n + (name[n] != '\0');
    }
    nk_json_out_strn(o, row->name, len > 0 ? text : "none", len > 0 ? len : 4);
}

static void put_list(struct nk_json_out *o, const struct nk_config_row *row,
                     const struct nk_strings *list)
{
    nk_json_out_open(o, row->name, '[');
    for (size_t i = 0; i < list->count; i++)
        nk_json_out_str(o, NULL, list->item[i]);
    nk_json_out_close(o, ']');
}

static void put_number(struct nk_json_out *o, const struct nk_config_row *row, uint64_t n)
{
    if (n == 0 && row->none)
        nk_json_out_str(o, row->name, "none");
    else if (row->type == NK_CONFIG_TIME)
        nk_json_out_real(o, row->name, (double)n / 1000);
    else
        nk_json_out_u64(o, row->name, n);
}

static void put_text(struct nk_json_out *o, const struct nk_config_row *row, const char *text)
{
    if (!text && row->none)
        text = "none";
    nk_json_out_str(o, row->name, text);
}

static void put_int(struct nk_json_out *o, const struct nk_config_row *row, int n)
{
    if (row->none && n == (row->type == NK_CONFIG_FD ? -1 : 0))
        nk_json_out_str(o, row->name, "none");
    else
        nk_json_out_i64(o, row->name, n);
}

static void put_row(struct nk_json_out *o, const struct nk_config_row *row, const void *field)
{
    char range[48];

    switch (row->type) {
    case NK_CONFIG_BOOL:
        nk_json_out_bool(o, row->name, *(const bool *)field);
        break;
    case NK_CONFIG_TEXT:
        put_text(o, row, *(char *const *)field);
        break;
    case NK_CONFIG_LIST:
        put_list(o, row, field);
        break;
    case NK_CONFIG_RANGE:
        (void)snprintf(range, sizeof range, "%llu-%llu", ((const unsigned long long *)field)[0],
                       ((const unsigned long long *)field)[1]);
        nk_json_out_str(o, row->name, range);
        break;
    case NK_CONFIG_EITHER:
        put_choice(o, row, *(const bool *)field);
        break;
    case NK_CONFIG_CHOICE:
        put_choice(o, row, *(const int *)field);
        break;
    case NK_CONFIG_MASK:
        put_mask(o, row, *(const uint32_t *)field);
        break;
    case NK_CONFIG_SIGNAL:
    case NK_CONFIG_FD:
        put_int(o, row, *(const int *)field);
        break;
    case NK_CONFIG_FILE:
        break;
    default:
        put_number(o, row, *(const uint64_t *)field);
    }
}

int nk_config_print_json(const struct nk_config *c)
{
    struct nk_buf buf = {0};
    struct nk_json_out o = {.buf = &buf};
    int rc = -1;

    nk_json_out_open(&o, NULL, '{');
    for (size_t i = 0; i < nk_config_table_count; i++) {
        const struct nk_config_row *row = &nk_config_table[i];

        put_row(&o, row, (const char *)c + row->at);
    }
    nk_json_out_close(&o, '}');
    if (!buf.failed && fwrite(nk_buf_front(&buf), 1, nk_buf_left(&buf), stdout) > 0)
        rc = putchar('\n') == '\n' && fflush(stdout) == 0 ? 0 : -1;
    nk_buf_fini(&buf);
    return rc;
}
