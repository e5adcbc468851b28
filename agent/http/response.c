#include "http/response.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define INTERIM_MAX 16
#define CHUNK_EXT_MAX 1024
#define CHUNK_DIGITS_MAX 15

static int malformed(struct nk_err *err, const char *what)
{
    return nk_fail(err, NK_BAD_GATEWAY, "the server's answer is not HTTP: %s", what);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_token(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static int read_status(struct nk_response *r, const char *line, struct nk_err *err)
{
    if (strncmp(line, "HTTP/1.1 ", 9) != 0 && strncmp(line, "HTTP/1.0 ", 9) != 0)
        return malformed(err, "status line");
    if (!is_digit(line[9]) || !is_digit(line[10]) || !is_digit(line[11]))
        return malformed(err, "status code");
    if (line[12] != ' ' && line[12] != '\0')
        return malformed(err, "status line");
    r->status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
    r->old = line[7] == '0';
    if (r->status < 100 || r->status > 599)
        return malformed(err, "status code");
    return 0;
}

static bool has_control(const char *value)
{
    for (; *value != '\0'; value++) {
        if (((unsigned char)*value < ' ' && *value != '\t') || *value == 0x7f)
            return true;
    }
    return false;
}

static int read_line(struct nk_response *r, char *line, struct nk_err *err)
{
    char *colon = line;
    char *value;
    size_t len;

    while (is_token(*colon))
        colon++;
    if (colon == line || *colon != ':')
        return malformed(err, "header line");
    if (r->line_count == NK_RESPONSE_LINES_MAX)
        return malformed(err, "too many header lines");
    *colon = '\0';
    value = colon + 1 + strspn(colon + 1, " \t");
    len = strlen(value);
    while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
        len--;
    value[len] = '\0';
    if (has_control(value))
        return malformed(err, "header value");
    r->line[r->line_count++] = (struct nk_response_line){.name = line, .value = value};
    return 0;
}

/* `text` ends with the CRLF of its last line. */
static int cut_lines(struct nk_response *r, char *text, struct nk_err *err)
{
    for (char *line = text; *line != '\0';) {
        char *end = strstr(line, "\r\n");
        int rc;

        if (!end)
            return malformed(err, "line end");
        *end = '\0';
        if (strpbrk(line, "\r\n"))
            return malformed(err, "line end");
        rc = line == text ? read_status(r, line, err) : read_line(r, line, err);
        if (rc < 0)
            return -1;
        line = end + 2;
    }
    return r->status > 0 ? 0 : malformed(err, "status line");
}

static int read_length(struct nk_response *r, const char *text, struct nk_err *err)
{
    size_t digits = strspn(text, "0123456789");

    if (digits == 0 || digits > 18 || text[digits] != '\0')
        return malformed(err, "Content-Length");
    r->length = strtoll(text, NULL, 10);
    return 0;
}

static size_t count_lines(const struct nk_response *r, const char *name)
{
    size_t count = 0;

    for (size_t i = 0; i < r->line_count; i++)
        count += strcasecmp(r->line[i].name, name) == 0;
    return count;
}

static int choose_framing(struct nk_response *r, struct nk_err *err)
{
    const char *coding = nk_response_header(r, "Transfer-Encoding");
    const char *length = nk_response_header(r, "Content-Length");

    if (count_lines(r, "Content-Length") + count_lines(r, "Transfer-Encoding") > 1)
        return malformed(err, "two body lengths");
    if (coding && (r->old || strcasecmp(coding, "chunked") != 0))
        return malformed(err, "Transfer-Encoding");
    r->length = -1;
    if (length && read_length(r, length, err) < 0)
        return -1;
    if (r->status == 101) {
        r->framing = NK_RESPONSE_EOF;
        return 0;
    }
    if (r->to_head || r->status < 200 || r->status == 204 || r->status == 304) {
        r->framing = NK_RESPONSE_NONE;
        r->done = true;
        return 0;
    }
    r->left = length ? (uint64_t)r->length : 0;
    r->done = length && r->left == 0;
    r->framing = length ? NK_RESPONSE_LENGTH : coding ? NK_RESPONSE_CHUNKED : NK_RESPONSE_EOF;
    return 0;
}

static void forget_head(struct nk_response *r)
{
    free(r->text);
    r->text = NULL;
    r->line_count = 0;
    r->status = 0;
    r->scanned = 0;
}

/* The end of the head in `in`, or 0 while it has not come. */
static size_t find_end(struct nk_response *r, const struct nk_buf *in)
{
    size_t len = nk_buf_left(in);
    size_t from = r->scanned > 3 ? r->scanned - 3 : 0;
    const uint8_t *end = NULL;

    if (len > from)
        end = memmem(nk_buf_front(in) + from, len - from, "\r\n\r\n", 4);
    r->scanned = len;
    return end ? (size_t)(end - nk_buf_front(in)) + 4 : 0;
}

static int take_head(struct nk_response *r, struct nk_buf *in, size_t len, struct nk_err *err)
{
    if (memchr(nk_buf_front(in), '\0', len))
        return malformed(err, "NUL in the head");
    /* The blank line goes, the last header keeps its line end. */
    r->text = strndup((const char *)nk_buf_front(in), len - 2);
    if (!r->text)
        return nk_fail_sys(err, ENOMEM, "cannot keep the head of the answer");
    nk_buf_consume(in, len);
    return cut_lines(r, r->text, err);
}

void nk_response_fini(struct nk_response *r)
{
    forget_head(r);
    free(r->ext);
    r->ext = NULL;
}

int nk_response_read_head(struct nk_response *r, struct nk_buf *in, bool *out_done,
                          struct nk_err *err)
{
    if (r->status > 0) /* an interim one that was handed out */
        forget_head(r);
    for (;;) {
        size_t len = find_end(r, in);

        if (len > NK_RESPONSE_HEAD_MAX || (len == 0 && nk_buf_left(in) >= NK_RESPONSE_HEAD_MAX))
            return nk_fail(err, NK_BAD_GATEWAY, "the head of the server's answer is too large");
        if (len == 0) {
            *out_done = false;
            return 0;
        }
        if (take_head(r, in, len, err) < 0)
            return -1;
        if (r->status >= 200 || r->status == 101)
            break;
        if (++r->interim > INTERIM_MAX)
            return malformed(err, "too many interim answers");
        if (r->with_interim) {
            *out_done = true;
            return 0;
        }
        forget_head(r);
    }
    if (choose_framing(r, err) < 0)
        return -1;
    *out_done = true;
    return 0;
}

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static int step_size(struct nk_response *r, uint8_t c, struct nk_err *err)
{
    int value = hex_value(c);

    if (value >= 0) {
        if (++r->digits > CHUNK_DIGITS_MAX)
            return malformed(err, "chunk size");
        r->left = r->left * 16 + (uint64_t)value;
        return 0;
    }
    if (r->digits == 0 || (c != '\r' && c != ';'))
        return malformed(err, "chunk size");
    r->line_size = 0;
    if (r->ext)
        r->ext[0] = '\0';
    r->chunk = c == '\r' ? NK_CHUNK_SIZE_LF : NK_CHUNK_EXT;
    return 0;
}

static int step_ext(struct nk_response *r, uint8_t c, struct nk_err *err)
{
    if (c == '\r') {
        r->chunk = NK_CHUNK_SIZE_LF;
        return 0;
    }
    if (c == '\n' || ++r->line_size > CHUNK_EXT_MAX)
        return malformed(err, "chunk extension");
    if (!r->ext)
        r->ext = malloc(CHUNK_EXT_MAX + 1);
    if (r->ext) {
        r->ext[r->line_size - 1] = (char)c;
        r->ext[r->line_size] = '\0';
    }
    return 0;
}

static int step_trailer(struct nk_response *r, uint8_t c, struct nk_err *err)
{
    if (c == '\r') {
        r->chunk = r->chunk == NK_CHUNK_TRAILER ? NK_CHUNK_LAST_LF : NK_CHUNK_TRAILER_LF;
        return 0;
    }
    if (c == '\n' || ++r->line_size > NK_RESPONSE_HEAD_MAX)
        return malformed(err, "trailer");
    r->chunk = NK_CHUNK_TRAILER_LINE;
    return 0;
}

static int expect(struct nk_response *r, bool as_expected, enum nk_response_chunk next,
                  struct nk_err *err)
{
    if (!as_expected)
        return malformed(err, "line end of a chunk");
    r->chunk = next;
    return 0;
}

/* One byte of the framing between the data of chunks. */
static int step_chunk(struct nk_response *r, uint8_t c, struct nk_err *err)
{
    switch (r->chunk) {
    case NK_CHUNK_SIZE:
        return step_size(r, c, err);
    case NK_CHUNK_EXT:
        return step_ext(r, c, err);
    case NK_CHUNK_SIZE_LF:
        r->digits = 0;
        r->line_size = 0;
        return expect(r, c == '\n', r->left > 0 ? NK_CHUNK_DATA : NK_CHUNK_TRAILER, err);
    case NK_CHUNK_DATA_CR:
        return expect(r, c == '\r', NK_CHUNK_DATA_LF, err);
    case NK_CHUNK_DATA_LF:
        return expect(r, c == '\n', NK_CHUNK_SIZE, err);
    case NK_CHUNK_TRAILER_LF:
        return expect(r, c == '\n', NK_CHUNK_TRAILER, err);
    case NK_CHUNK_LAST_LF:
        r->done = c == '\n';
        return expect(r, c == '\n', NK_CHUNK_SIZE, err);
    default:
        return step_trailer(r, c, err);
    }
}

size_t nk_response_direct(const struct nk_response *r)
{
    if (r->done || r->framing == NK_RESPONSE_CHUNKED)
        return 0;
    return r->framing == NK_RESPONSE_EOF || r->left > SIZE_MAX ? SIZE_MAX : (size_t)r->left;
}

void nk_response_took(struct nk_response *r, size_t n)
{
    if (r->framing != NK_RESPONSE_LENGTH)
        return;
    r->left -= n;
    r->done = r->left == 0;
}

static void move(struct nk_response *r, struct nk_buf *in, struct nk_buf *out)
{
    size_t len = nk_buf_left(in);

    if (r->framing != NK_RESPONSE_EOF && len > r->left)
        len = (size_t)r->left;
    nk_buf_add(out, nk_buf_front(in), len);
    nk_buf_consume(in, len);
    if (r->framing != NK_RESPONSE_EOF)
        r->left -= len;
}

static int read_chunked(struct nk_response *r, struct nk_buf *in, struct nk_buf *out,
                        struct nk_err *err)
{
    while (!r->done && nk_buf_left(in) > 0) {
        if (r->chunk == NK_CHUNK_DATA) {
            move(r, in, out);
            if (r->left == 0)
                r->chunk = NK_CHUNK_DATA_CR;
            continue;
        }
        if (step_chunk(r, *nk_buf_front(in), err) < 0)
            return -1;
        nk_buf_consume(in, 1);
    }
    return 0;
}

int nk_response_read_body(struct nk_response *r, struct nk_buf *in, struct nk_buf *out,
                          struct nk_err *err)
{
    if (r->done || nk_buf_left(in) == 0)
        return 0;
    if (r->framing == NK_RESPONSE_CHUNKED) {
        if (read_chunked(r, in, out, err) < 0)
            return -1;
    } else {
        move(r, in, out);
        r->done = r->framing == NK_RESPONSE_LENGTH && r->left == 0;
    }
    if (out->failed)
        return nk_fail(err, NK_TOO_LARGE, "the answer is larger than there is room for");
    return 0;
}

/* What the server said in a chunk whose data did not come. The quotes are taken off in place. */
static bool find_why(const struct nk_response *r, const char **out)
{
    static const char name[] = "broken=\"";
    char *text, *to;

    if (r->framing != NK_RESPONSE_CHUNKED || r->chunk != NK_CHUNK_DATA || !r->ext ||
        strncmp(r->ext, name, sizeof name - 1) != 0)
        return false;
    text = to = r->ext + sizeof name - 1;
    for (const char *at = text; *at != '\0' && *at != '"'; at++) {
        if (*at == '\\' && at[1] != '\0')
            at++;
        *to++ = *at;
    }
    *to = '\0';
    *out = text;
    return true;
}

int nk_response_end(struct nk_response *r, struct nk_err *err)
{
    const char *why;

    if (r->status > 0 && r->framing == NK_RESPONSE_EOF)
        r->done = true;
    if (r->done)
        return 0;
    if (find_why(r, &why))
        return nk_fail(err, NK_BAD_GATEWAY, "broken off: %s", why);
    if (r->status > 0)
        return nk_fail(err, NK_BAD_GATEWAY, "the connection ended in the middle of the answer");
    return nk_fail(err, NK_BAD_GATEWAY, "the connection ended without an answer");
}

const char *nk_response_header(const struct nk_response *r, const char *name)
{
    for (size_t i = 0; i < r->line_count; i++) {
        if (strcasecmp(r->line[i].name, name) == 0)
            return r->line[i].value;
    }
    return NULL;
}
