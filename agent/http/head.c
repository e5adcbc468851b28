#include "http/head.h"

#include <string.h>
#include <strings.h>

const char *nk_head_field(const struct nk_head *head, const char *name, unsigned nth)
{
    const char *at = head->fields;

    for (size_t i = 0; i < head->field_count; i++) {
        const char *value = at + strlen(at) + 1;

        if (strcasecmp(at, name) == 0 && nth-- == 0)
            return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}

bool nk_head_has_token(const char *list, const char *token)
{
    size_t len = strlen(token);

    while (list && *list) {
        list += strspn(list, " \t,");
        size_t n = strcspn(list, ",");
        size_t word = n;

        while (word > 0 && (list[word - 1] == ' ' || list[word - 1] == '\t'))
            word--;
        if (word == len && strncasecmp(list, token, len) == 0)
            return true;
        list += n;
    }
    return false;
}

/* What the coding headers say together. llhttp has refused what contradicts itself. */
static int check_coding(const struct nk_head *head, struct nk_err *err)
{
    const char *coding = nk_head_field(head, "transfer-encoding", 0);

    if (!coding)
        return 0;
    if (nk_head_field(head, "transfer-encoding", 1))
        return nk_fail(err, NK_BAD_REQUEST, "Transfer-Encoding is given twice");
    if (head->http10)
        return nk_fail(err, NK_BAD_REQUEST, "HTTP/1.0 has no Transfer-Encoding");
    if (!head->chunked)
        return nk_fail(err, NK_BAD_REQUEST, "the last transfer coding must be chunked");
    if (strcasecmp(coding, "chunked") != 0)
        return nk_fail(err, NK_NOT_SUPPORTED, "chunked is the only transfer coding known here");
    return 0;
}

static int check_host(const struct nk_head *head, struct nk_err *err)
{
    const char *host = nk_head_field(head, "host", 0);

    if (!host && !head->http10)
        return nk_fail(err, NK_BAD_REQUEST, "the Host header is missing");
    if (host && nk_head_field(head, "host", 1))
        return nk_fail(err, NK_BAD_REQUEST, "the Host header is given twice");
    return 0;
}

int nk_head_check(const struct nk_head *head, struct nk_err *err)
{
    if (head->content_length == INT64_MAX)
        return nk_fail(err, NK_TOO_LARGE, "the body is too large");
    if (check_coding(head, err) < 0)
        return -1;
    return check_host(head, err);
}
