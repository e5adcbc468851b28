#include "cli/sse_read.h"

#include <errno.h>
#include <string.h>

/* The length of the first line in `in`, or -1 while its end has not come. */
static ptrdiff_t find_line(struct nk_sse_read *r)
{
    const uint8_t *front = nk_buf_front(&r->in);
    size_t len = nk_buf_left(&r->in);
    const uint8_t *lf, *cr;

    if (r->scanned == len)
        return -1;
    lf = memchr(front + r->scanned, '\n', len - r->scanned);
    cr = memchr(front + r->scanned, '\r', (lf ? (size_t)(lf - front) : len) - r->scanned);
    r->scanned = len;
    if (!lf && !cr)
        return -1;
    return (cr ? cr : lf) - front;
}

static bool field_is(const uint8_t *line, size_t len, const char *name)
{
    return len == strlen(name) && memcmp(line, name, len) == 0;
}

static void read_event(struct nk_sse_read *r, const uint8_t *value, size_t len)
{
    /* A name too long to be one of ours stays unknown, cut or not. */
    if (len >= sizeof r->event)
        len = sizeof r->event - 1;
    memcpy(r->event, value, len);
    r->event[len] = '\0';
}

static void read_id(struct nk_sse_read *r, const uint8_t *value, size_t len)
{
    uint64_t id = 0;

    if (memchr(value, '\0', len))
        return;
    r->id = NK_SSE_READ_NO_ID;
    if (len == 0 || len > 19)
        return;
    for (size_t i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9')
            return;
        id = id * 10 + (uint64_t)(value[i] - '0');
    }
    r->id = id;
}

static void read_field(struct nk_sse_read *r, const uint8_t *line, size_t len)
{
    const uint8_t *colon = memchr(line, ':', len);
    size_t name = colon ? (size_t)(colon - line) : len;
    const uint8_t *value = colon ? colon + 1 : line + len;
    size_t left = (size_t)(line + len - value);

    if (left > 0 && *value == ' ') {
        value++;
        left--;
    }
    if (field_is(line, name, "data")) {
        nk_buf_add(&r->data, value, left);
        nk_buf_add_char(&r->data, '\n');
    } else if (field_is(line, name, "event")) {
        read_event(r, value, left);
    } else if (field_is(line, name, "id")) {
        read_id(r, value, left);
    }
}

/* At a blank line: whether there is an event to give. */
static bool dispatch(struct nk_sse_read *r, struct nk_sse_event *out)
{
    size_t len = nk_buf_left(&r->data);

    r->given = true;
    if (len == 0)
        return false;
    /* The line feed behind the last data line becomes the NUL. */
    r->data.data[r->data.off + len - 1] = '\0';
    out->event = r->event[0] != '\0' ? r->event : "message";
    out->data = (const char *)nk_buf_front(&r->data);
    out->len = len - 1;
    out->id = r->id;
    return true;
}

static void skip_front(struct nk_sse_read *r)
{
    if (r->given) {
        nk_buf_consume(&r->data, nk_buf_left(&r->data));
        r->event[0] = '\0';
        r->given = false;
    }
    if (r->after_cr && nk_buf_left(&r->in) > 0) {
        r->after_cr = false;
        if (*nk_buf_front(&r->in) == '\n') {
            nk_buf_consume(&r->in, 1);
            r->scanned = 0;
        }
    }
}

static size_t skip_mark(struct nk_sse_read *r, const uint8_t *line, size_t len)
{
    size_t skip = !r->begun && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

    r->begun = true;
    return skip;
}

void nk_sse_read_init(struct nk_sse_read *r, size_t max)
{
    *r = (struct nk_sse_read){.id = NK_SSE_READ_NO_ID, .max = max};
}

void nk_sse_read_fini(struct nk_sse_read *r)
{
    nk_buf_fini(&r->in);
    nk_buf_fini(&r->data);
}

int nk_sse_read_next(struct nk_sse_read *r, struct nk_sse_event *out, struct nk_err *err)
{
    for (;;) {
        const uint8_t *line;
        ptrdiff_t len;
        size_t mark;
        bool whole = false;

        skip_front(r);
        len = find_line(r);
        if (r->in.failed || r->data.failed)
            return nk_fail_sys(err, ENOMEM, "cannot keep an event");
        if (nk_buf_left(&r->data) + (len < 0 ? nk_buf_left(&r->in) : (size_t)len) > r->max)
            return nk_fail(err, NK_TOO_LARGE, "an event is larger than %zu bytes", r->max);
        if (len < 0)
            return 0;
        line = nk_buf_front(&r->in);
        mark = skip_mark(r, line, (size_t)len);
        r->after_cr = line[len] == '\r';
        if ((size_t)len == mark)
            whole = dispatch(r, out);
        else
            read_field(r, line + mark, (size_t)len - mark);
        nk_buf_consume(&r->in, (size_t)len + 1);
        r->scanned = 0;
        if (whole)
            return 1;
    }
}
