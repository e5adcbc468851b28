#include "http/range.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* Digits into *out; NULL where there is none or the number is too large for any file. */
static const char *read_number(const char *s, uint64_t *out)
{
    const char *at = s;
    uint64_t n = 0;

    for (; *at >= '0' && *at <= '9'; at++) {
        if (n > (UINT64_MAX - 9) / 10)
            return NULL;
        n = n * 10 + (uint64_t)(*at - '0');
    }
    *out = n;
    return at > s ? at : NULL;
}

static const char *skip_space(const char *s)
{
    return s + strspn(s, " \t");
}

static enum nk_range suffix(const char *s, uint64_t size, uint64_t *out_from, uint64_t *out_len)
{
    uint64_t len = 0;

    s = read_number(s, &len);
    if (!s || *skip_space(s) != '\0')
        return NK_RANGE_WHOLE;
    if (len == 0 || size == 0)
        return NK_RANGE_BEYOND;
    *out_len = len < size ? len : size;
    *out_from = size - *out_len;
    return NK_RANGE_PART;
}

enum nk_range nk_range_parse(const char *value, uint64_t size, uint64_t *out_from,
                             uint64_t *out_len)
{
    uint64_t first = 0;
    uint64_t last = UINT64_MAX;
    const char *s;

    if (!value || strncasecmp(value, "bytes=", 6) != 0)
        return NK_RANGE_WHOLE;
    s = skip_space(value + 6);
    if (*s == '-')
        return suffix(s + 1, size, out_from, out_len);
    s = read_number(s, &first);
    if (!s || *s != '-')
        return NK_RANGE_WHOLE;
    s++;
    if (*s >= '0' && *s <= '9')
        s = read_number(s, &last);
    if (!s || *skip_space(s) != '\0' || last < first)
        return NK_RANGE_WHOLE;
    if (first >= size)
        return NK_RANGE_BEYOND;
    *out_from = first;
    *out_len = (last < size ? last : size - 1) - first + 1;
    return NK_RANGE_PART;
}

/* Whether a list of entity tags holds ours. A weak tag counts only in a weak comparison. */
static bool lists_tag(const char *list, const char *etag, bool weak)
{
    size_t len = strlen(etag);

    for (const char *s = skip_space(list); *s; s = skip_space(s)) {
        bool is_weak = strncmp(s, "W/", 2) == 0;
        const char *tag = is_weak ? s + 2 : s;
        const char *end = *tag == '"' ? strchr(tag + 1, '"') : NULL;

        if (*s == '*')
            return true;
        if (!end)
            return false;
        if ((weak || !is_weak) && (size_t)(end + 1 - tag) == len && memcmp(tag, etag, len) == 0)
            return true;
        s = skip_space(end + 1);
        if (*s == ',')
            s++;
    }
    return false;
}

int64_t nk_range_parse_date(const char *value)
{
    static const char *const forms[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
                                        "%a %b %d %H:%M:%S %Y"};

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm tm = {0};
        const char *end = strptime(value, forms[i], &tm);

        if (end && *end == '\0')
            return timegm(&tm);
    }
    return -1;
}

static bool precondition_fails(const struct nk_range_ask *ask, const struct nk_range_file *file)
{
    if (ask->if_match)
        return !lists_tag(ask->if_match, file->etag, false);
    if (ask->if_unmodified_since) {
        int64_t date = nk_range_parse_date(ask->if_unmodified_since);

        return date >= 0 && file->mtime > date;
    }
    return false;
}

static bool is_unchanged(const struct nk_range_ask *ask, const struct nk_range_file *file)
{
    if (ask->if_none_match)
        return lists_tag(ask->if_none_match, file->etag, true);
    if (ask->if_modified_since) {
        int64_t date = nk_range_parse_date(ask->if_modified_since);

        return date >= 0 && file->mtime <= date;
    }
    return false;
}

/* A date is too coarse to promise that the rest of a download fits; only one of our own answers,
 * exactly as it was given, is taken. */
static bool range_applies(const struct nk_range_ask *ask, const struct nk_range_file *file)
{
    if (!ask->if_range)
        return true;
    if (*ask->if_range == '"' || strncmp(ask->if_range, "W/", 2) == 0)
        return strcmp(ask->if_range, file->etag) == 0;
    return nk_range_parse_date(ask->if_range) == file->mtime;
}

int nk_range_judge(const struct nk_range_ask *ask, const struct nk_range_file *file,
                   uint64_t *out_from, uint64_t *out_len)
{
    enum nk_range range = NK_RANGE_WHOLE;

    *out_from = 0;
    *out_len = file->size;
    if (precondition_fails(ask, file))
        return 412;
    if (is_unchanged(ask, file))
        return 304;
    if (range_applies(ask, file))
        range = nk_range_parse(ask->range, file->size, out_from, out_len);
    if (range == NK_RANGE_BEYOND)
        return 416;
    return range == NK_RANGE_PART ? 206 : 200;
}
