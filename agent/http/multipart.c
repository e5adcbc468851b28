#include "http/multipart.h"

#include <string.h>
#include <strings.h>

#include "http/multipart_head.h"

#define LINE_MAX 64 /* blanks behind a boundary */

static bool is_boundary_char(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("'()+_,-./:=? ", c));
}

static bool is_boundary(const char *s)
{
    size_t len = strlen(s);

    if (len == 0 || len > NK_MULTIPART_BOUNDARY_MAX || s[len - 1] == ' ')
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!is_boundary_char((unsigned char)s[i]))
            return false;
    }
    return true;
}

int nk_multipart_init(struct nk_multipart *m, const char *content_type, struct nk_err *err)
{
    char text[512];
    const char *boundary;
    size_t len;

    if (strlen(content_type) >= sizeof text)
        return nk_fail(err, NK_BAD_REQUEST, "the Content-Type is too long");
    memcpy(text, content_type, strlen(content_type) + 1);
    boundary = nk_multipart_head_param(text, "boundary");
    if (!boundary || !is_boundary(boundary))
        return nk_fail(err, NK_BAD_REQUEST, "the Content-Type has no usable boundary");
    len = strlen(boundary);
    *m = (struct nk_multipart){.mark_len = len + 4, .head = {.max = NK_MULTIPART_HEAD_MAX}};
    memcpy(m->mark, "\r\n--", 4);
    memcpy(m->mark + 4, boundary, len + 1);
    m->matched = m->assumed = 2; /* the first boundary needs no line end before it */
    return 0;
}

void nk_multipart_fini(struct nk_multipart *m)
{
    nk_buf_fini(&m->head);
}

static enum nk_multipart_event fail(struct nk_multipart *m, const char *why, struct nk_err *err)
{
    m->state = NK_MULTIPART_AT_FAILURE;
    (void)nk_fail(err, NK_BAD_REQUEST, "%s", why);
    return NK_MULTIPART_FAIL;
}

static void use(const uint8_t **data, size_t *len, size_t n)
{
    *data += n;
    *len -= n;
}

/* Goes on comparing with the mark. Where it was none, the bytes that were taken for it are owed. */
static bool match(struct nk_multipart *m, const uint8_t **data, size_t *len)
{
    while (*len > 0 && m->matched < m->mark_len && **data == (uint8_t)m->mark[m->matched]) {
        m->matched++;
        use(data, len, 1);
    }
    if (m->matched == m->mark_len)
        return true;
    if (*len > 0) {
        m->owed_from = m->assumed;
        m->owed = m->matched - m->assumed;
        m->matched = m->assumed = 0;
    }
    return false;
}

static enum nk_multipart_event end_part(struct nk_multipart *m)
{
    bool inside = m->state == NK_MULTIPART_AT_BODY;

    m->matched = m->assumed = 0;
    m->state = NK_MULTIPART_AT_LINE;
    m->head.off = m->head.len = 0;
    return inside ? NK_MULTIPART_PART_END : NK_MULTIPART_MORE;
}

/* Bytes up to the next line end that may belong to a boundary. */
static enum nk_multipart_event give(struct nk_multipart *m, const uint8_t **data, size_t *len)
{
    const uint8_t *cr = memchr(*data, '\r', *len);

    m->data = *data;
    m->len = cr ? (size_t)(cr - *data) : *len;
    use(data, len, m->len);
    return NK_MULTIPART_DATA;
}

static enum nk_multipart_event read_body(struct nk_multipart *m, const uint8_t **data, size_t *len)
{
    if (m->owed > 0) {
        m->data = (const uint8_t *)m->mark + m->owed_from;
        m->len = m->owed;
        m->owed = 0;
        return NK_MULTIPART_DATA;
    }
    if (m->matched > 0 || **data == '\r')
        return match(m, data, len) ? end_part(m) : NK_MULTIPART_MORE;
    return give(m, data, len);
}

static enum nk_multipart_event begin_part(struct nk_multipart *m, struct nk_err *err)
{
    struct nk_multipart_head head;
    size_t len = nk_buf_left(&m->head);

    nk_buf_add_char(&m->head, '\0');
    if (m->head.failed)
        return fail(m, "the headers of a part are too large", err);
    if (nk_multipart_head_parse((char *)m->head.data + m->head.off, len, &head, err) < 0) {
        m->state = NK_MULTIPART_AT_FAILURE;
        return NK_MULTIPART_FAIL;
    }
    m->name = head.name;
    m->filename = head.filename;
    m->filename_len = head.filename_len;
    m->type = head.type;
    m->state = NK_MULTIPART_AT_BODY;
    m->matched = m->assumed = 2; /* the boundary may follow the empty line at once */
    m->owed = 0;
    if (++m->parts > NK_MULTIPART_PARTS_MAX)
        return fail(m, "there are too many parts", err);
    return NK_MULTIPART_PART;
}

static bool ends_in(const struct nk_buf *b, const char *tail, size_t n)
{
    return nk_buf_left(b) >= n && memcmp(b->data + b->len - n, tail, n) == 0;
}

static enum nk_multipart_event read_head(struct nk_multipart *m, const uint8_t **data, size_t *len,
                                         struct nk_err *err)
{
    while (*len > 0) {
        uint8_t c = **data;

        use(data, len, 1);
        nk_buf_add_char(&m->head, (char)c);
        if (m->head.failed)
            return fail(m, "the headers of a part are too large", err);
        if (c != '\n')
            continue;
        if (!ends_in(&m->head, "\r\n", 2))
            return fail(m, "a line of a part's headers does not end in CRLF", err);
        if (nk_buf_left(&m->head) == 2 || ends_in(&m->head, "\r\n\r\n", 4))
            return begin_part(m, err);
    }
    return NK_MULTIPART_MORE;
}

/* "--" is the end of all, blanks and a line end the beginning of a part. */
static enum nk_multipart_event read_line(struct nk_multipart *m, const uint8_t **data, size_t *len,
                                         struct nk_err *err)
{
    while (*len > 0) {
        uint8_t c = **data;

        use(data, len, 1);
        nk_buf_add_char(&m->head, (char)c);
        if (ends_in(&m->head, "--", 2) && nk_buf_left(&m->head) == 2) {
            m->state = NK_MULTIPART_AT_EPILOGUE;
            return NK_MULTIPART_END;
        }
        if (ends_in(&m->head, "\r\n", 2) && m->head.data[m->head.off] != '-') {
            m->head.off = m->head.len = 0;
            m->state = NK_MULTIPART_AT_HEAD;
            return NK_MULTIPART_MORE;
        }
        if (m->head.failed || nk_buf_left(&m->head) > LINE_MAX || c == '\0' || !strchr(" \t\r-", c))
            return fail(m, "a boundary's line goes on with something else", err);
    }
    return NK_MULTIPART_MORE;
}

static enum nk_multipart_event read_preamble(struct nk_multipart *m, const uint8_t **data,
                                             size_t *len)
{
    m->owed = 0;
    if (m->matched > 0 || **data == '\r')
        return match(m, data, len) ? end_part(m) : NK_MULTIPART_MORE;
    (void)give(m, data, len);
    return NK_MULTIPART_MORE;
}

static enum nk_multipart_event step(struct nk_multipart *m, const uint8_t **data, size_t *len,
                                    struct nk_err *err)
{
    switch (m->state) {
    case NK_MULTIPART_AT_PREAMBLE:
        return read_preamble(m, data, len);
    case NK_MULTIPART_AT_LINE:
        return read_line(m, data, len, err);
    case NK_MULTIPART_AT_HEAD:
        return read_head(m, data, len, err);
    case NK_MULTIPART_AT_BODY:
        return read_body(m, data, len);
    case NK_MULTIPART_AT_EPILOGUE:
        use(data, len, *len);
        return NK_MULTIPART_MORE;
    case NK_MULTIPART_AT_FAILURE:
        break;
    }
    return fail(m, "the body is malformed", err);
}

enum nk_multipart_event nk_multipart_next(struct nk_multipart *m, const uint8_t **data, size_t *len,
                                          struct nk_err *err)
{
    enum nk_multipart_event event = NK_MULTIPART_MORE;

    while (event == NK_MULTIPART_MORE && (*len > 0 || m->owed > 0))
        event = step(m, data, len, err);
    return event;
}
