#include "toy_vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static unsigned hex(const char *at)
{
    char text[3] = {at[0], at[1], '\0'};

    return (unsigned)strtoul(text, NULL, 16);
}

static void add_unescaped(struct nk_buf *out, const char *at, const char *end);

/* `at` is behind the bracket; returns what follows the closing one. */
static const char *add_repeated(struct nk_buf *out, const char *at)
{
    const char *close = strchr(at, ']');
    const char *star = close;
    long count;

    while (star > at && *star != '*')
        star--;
    count = strtol(star + 1, NULL, 10);
    for (long i = 0; i < count; i++)
        add_unescaped(out, at, star);
    return close + 1;
}

static void add_unescaped(struct nk_buf *out, const char *at, const char *end)
{
    while (at < end) {
        if (*at != '\\') {
            nk_buf_add_char(out, *at++);
            continue;
        }
        at += 2;
        switch (at[-1]) {
        case 'r':
            nk_buf_add_char(out, '\r');
            break;
        case 'n':
            nk_buf_add_char(out, '\n');
            break;
        case 'x':
            nk_buf_add_char(out, (char)hex(at));
            at += 2;
            break;
        case '[':
            at = add_repeated(out, at);
            break;
        default:
            nk_buf_add_char(out, at[-1]);
        }
    }
}

static bool read_line(const char *line, struct toy_vector *v)
{
    char close[8];
    int used = 0;
    struct nk_buf bytes = {0};

    if (sscanf(line, "%d %7s %63s%n", &v->status, close, v->name, &used) != 3 || line[used] != ' ')
        return false;
    v->close = strcmp(close, "close") == 0;
    add_unescaped(&bytes, line + used + 1, line + strcspn(line, "\n"));
    v->bytes = (char *)bytes.data;
    v->len = bytes.len;
    return !bytes.failed;
}

struct toy_vector *toy_vectors_load(const char *path, size_t *out_count)
{
    FILE *file = fopen(path, "re");
    struct toy_vector *all = NULL;
    size_t count = 0;
    char line[1024];
    bool good = file != NULL;

    while (good && fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        struct toy_vector *grown = realloc(all, (count + 1) * sizeof *all);

        good = grown != NULL;
        all = good ? grown : all;
        good = good && read_line(line, &all[count]);
        count += good;
    }
    if (file)
        (void)fclose(file);
    if (!good || count == 0) {
        toy_vectors_free(all, count);
        return NULL;
    }
    *out_count = count;
    return all;
}

void toy_vectors_free(struct toy_vector *vectors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(vectors[i].bytes);
    free(vectors);
}
