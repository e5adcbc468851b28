#include "http/multipart_head.h"

#include <string.h>
#include <strings.h>

static char *skip_space(char *s)
{
    return s + strspn(s, " \t");
}

/* Only a quote and a backslash are escaped by clients; others send Windows paths as they are. */
static char *unquote(char *s, char **out_end)
{
    char *to = s + 1;
    char *at = s + 1;

    while (*at && *at != '"') {
        if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
            at++;
        *to++ = *at++;
    }
    if (*at != '"')
        return NULL;
    *out_end = at + 1;
    *to = '\0';
    return s + 1;
}

/* One `name=value`, both ended in place. *at goes to the next one, or becomes NULL. */
static int read_param(char **at, char **out_name, char **out_value)
{
    char *name = skip_space(*at);
    char *s = name + strcspn(name, "=;\" \t");
    char *end, *rest;

    if (*s != '=' || s == name)
        return -1;
    *s++ = '\0';
    *out_name = name;
    *out_value = s;
    end = s + strcspn(s, "; \t");
    if (*s == '"')
        *out_value = unquote(s, &end);
    if (!*out_value)
        return -1;
    rest = skip_space(end);
    if (*rest != '\0' && *rest != ';')
        return -1;
    *at = *rest == ';' ? rest + 1 : NULL;
    if (*s != '"')
        *end = '\0';
    return 0;
}

char *nk_multipart_head_param(char *value, const char *name)
{
    char *at = strchr(value, ';');
    char *found, *text;

    if (at)
        *at++ = '\0';
    while (at && *skip_space(at) != '\0') {
        if (read_param(&at, &found, &text) < 0)
            return NULL;
        if (strcasecmp(found, name) == 0)
            return text;
    }
    return NULL;
}

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* RFC 8187: UTF-8'language'percent-encoded, in place. */
static int decode_extended(char *value, const char **out, size_t *out_len)
{
    char *at = strchr(value, '\'');
    char *to = value;

    if (strncasecmp(value, "UTF-8'", 6) != 0 || !at)
        return -1;
    at = strchr(at + 1, '\'');
    if (!at)
        return -1;
    for (at++; *at; at++) {
        if (*at == '%') {
            int high = hex_of(at[1]);
            int low = high < 0 ? -1 : hex_of(at[2]);

            if (low < 0 || (high == 0 && low == 0))
                return -1;
            *to++ = (char)(high << 4 | low);
            at += 2;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
    *out = value;
    *out_len = (size_t)(to - value);
    return 0;
}

/* Its parameters are read one by one, since a name may come in two forms; the extended one counts. */
static int read_disposition(char *value, struct nk_multipart_head *out)
{
    bool extended = false;
    char *at = strchr(value, ';');
    char *name, *text;

    if (at)
        *at++ = '\0';
    value[strcspn(value, " \t")] = '\0';
    if (strcasecmp(value, "form-data") != 0)
        return -1;
    while (at && *skip_space(at) != '\0') {
        if (read_param(&at, &name, &text) < 0)
            return -1;
        if (strcasecmp(name, "name") == 0)
            out->name = text;
        if (strcasecmp(name, "filename") == 0 && !extended) {
            out->filename = text;
            out->filename_len = strlen(text);
        }
        if (strcasecmp(name, "filename*") == 0) {
            if (decode_extended(text, &out->filename, &out->filename_len) < 0)
                return -1;
            extended = true;
        }
    }
    return 0;
}

static int read_line(char *line, struct nk_multipart_head *out, struct nk_err *err)
{
    char *colon = strchr(line, ':');
    char *value;

    if (!colon || colon == line || strcspn(line, " \t") < (size_t)(colon - line))
        return nk_fail(err, NK_BAD_REQUEST, "a header of a part is malformed");
    *colon = '\0';
    value = skip_space(colon + 1);
    if (strcasecmp(line, "Content-Type") == 0)
        out->type = value;
    if (strcasecmp(line, "Content-Disposition") == 0 && read_disposition(value, out) < 0)
        return nk_fail(err, NK_BAD_REQUEST, "the Content-Disposition of a part is malformed");
    return 0;
}

int nk_multipart_head_parse(char *text, size_t len, struct nk_multipart_head *out,
                            struct nk_err *err)
{
    char *line = text;

    *out = (struct nk_multipart_head){0};
    if (memchr(text, '\0', len))
        return nk_fail(err, NK_BAD_REQUEST, "a header of a part holds a NUL byte");
    while (line < text + len) {
        char *end = strstr(line, "\r\n");

        if (!end)
            break;
        *end = '\0';
        if (*line != '\0' && read_line(line, out, err) < 0)
            return -1;
        line = end + 2;
    }
    return 0;
}
