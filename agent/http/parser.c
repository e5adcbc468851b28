#include "http/parser.h"

#include <llhttp.h>
#include <string.h>

#include "base/attr.h"
#include "base/buf.h"
#include "http/url.h"

/* What the next byte belongs to. Each state is fed to llhttp up to its own end and no further, so
 * that limits and our own checks fall on the same byte however the input was cut. */
enum state {
    AT_LEAD, /* line ends before the request, which old clients send */
    AT_METHOD,
    AT_TARGET,
    AT_VERSION,
    AT_FIELDS,
    AT_LENGTH_BODY,
    AT_CHUNK_LINE,
    AT_CHUNK_DATA,
    AT_CHUNK_END,
    AT_TRAILER,
    AT_DONE,
    AT_FAILED,
};

struct nk_parser {
    llhttp_t core;
    struct nk_parser_limits limits; /* a copy */
    enum state state;
    size_t head_used;     /* bytes of the head, to this one */
    size_t state_used;    /* bytes of the target, the version, a chunk line, the trailers */
    uint64_t left;        /* bytes of the body, or of a chunk, still to come */
    bool headers_over;    /* fields that come now are trailers */
    bool too_many_fields; /* why a callback refused */
    bool message_over;
    char version[8];     /* the first bytes after the target */
    struct nk_buf text;  /* owned: target NUL, then the fields as in nk_head */
    size_t target_len;   /* at the front of `text` */
    size_t value_start;  /* in `text` */
    const uint8_t *body; /* borrowed: what the last feed found */
    size_t body_len;
    struct nk_head head;
};

static struct nk_parser *of(llhttp_t *core)
{
    return NK_CONTAINER_OF(core, struct nk_parser, core);
}

static int on_text(llhttp_t *core, const char *at, size_t len)
{
    struct nk_parser *p = of(core);

    if (p->headers_over)
        return 0;
    /* llhttp refuses NUL; the layout of the fields depends on it. */
    if (memchr(at, '\0', len))
        return -1;
    nk_buf_add(&p->text, at, len);
    return p->text.failed ? -1 : 0;
}

static int end_text(struct nk_parser *p)
{
    nk_buf_add_char(&p->text, '\0');
    return p->text.failed ? -1 : 0;
}

static int on_url_complete(llhttp_t *core)
{
    of(core)->target_len = of(core)->text.len;
    return end_text(of(core));
}

static int on_field_complete(llhttp_t *core)
{
    struct nk_parser *p = of(core);

    if (p->headers_over)
        return 0;
    if (++p->head.field_count > p->limits.header_lines_max) {
        p->too_many_fields = true;
        return -1;
    }
    if (end_text(p) < 0)
        return -1;
    p->value_start = p->text.len;
    return 0;
}

static int on_value_complete(llhttp_t *core)
{
    struct nk_parser *p = of(core);
    struct nk_buf *text = &p->text;

    if (p->headers_over)
        return 0;
    while (text->len > p->value_start &&
           (text->data[text->len - 1] == ' ' || text->data[text->len - 1] == '\t'))
        text->len--;
    return end_text(p);
}

static int on_headers_complete(llhttp_t *core)
{
    /* No upgrade but WebSocket's, and that one is the handler's: never llhttp's. */
    core->upgrade = 0;
    of(core)->headers_over = true;
    return HPE_PAUSED;
}

static int on_body(llhttp_t *core, const char *at, size_t len)
{
    of(core)->body = (const uint8_t *)at;
    of(core)->body_len = len;
    return 0;
}

static int on_chunk_header(llhttp_t *core)
{
    of(core)->left = core->content_length;
    /* Trailers are ignored whatever they say; llhttp would hold a length against the coding. */
    if (core->content_length == 0)
        core->flags &= (uint16_t)~F_TRANSFER_ENCODING;
    return 0;
}

static int on_message_complete(llhttp_t *core)
{
    of(core)->message_over = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_text,
    .on_url_complete = on_url_complete,
    .on_header_field = on_text,
    .on_header_field_complete = on_field_complete,
    .on_header_value = on_text,
    .on_header_value_complete = on_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_chunk_header = on_chunk_header,
    .on_message_complete = on_message_complete,
};

struct nk_parser *nk_parser_new(struct nk_arena *arena, const struct nk_parser_limits *limits)
{
    struct nk_parser *p = nk_arena_alloc(arena, sizeof *p);

    if (!p)
        return NULL;
    llhttp_init(&p->core, HTTP_REQUEST, &settings);
    p->limits = *limits;
    p->head.content_length = -1;
    p->head.method = NK_METHOD_COUNT;
    p->head.path = "";
    p->head.query = "";
    return p;
}

void nk_parser_free(struct nk_parser *p)
{
    if (p)
        nk_buf_fini(&p->text);
}

static enum nk_parse fail(struct nk_parser *p, enum nk_code code, const char *msg,
                          struct nk_err *err)
{
    p->state = AT_FAILED;
    nk_fail(err, code, "%s", msg);
    return NK_PARSE_FAIL;
}

static enum nk_method method_of(uint8_t method)
{
    switch (method) {
    case HTTP_GET:
        return NK_GET;
    case HTTP_HEAD:
        return NK_HEAD;
    case HTTP_POST:
        return NK_POST;
    case HTTP_PUT:
        return NK_PUT;
    case HTTP_PATCH:
        return NK_PATCH;
    case HTTP_DELETE:
        return NK_DELETE;
    case HTTP_OPTIONS:
        return NK_OPTIONS;
    default:
        return NK_METHOD_COUNT;
    }
}

static enum nk_parse fail_unknown_method(struct nk_parser *p, struct nk_err *err)
{
    (void)fail(p, NK_METHOD_NOT_ALLOWED, "unknown method", err);
    if (err)
        err->value = (1u << NK_OPTIONS) - 1;
    return NK_PARSE_FAIL;
}

static bool knows_version(const struct nk_parser *p)
{
    return memcmp(p->version, "HTTP/1.", 7) == 0 && (p->version[7] == '0' || p->version[7] == '1');
}

/* `c`: the byte that llhttp refused, 0 where there is none. */
static enum nk_parse fail_core(struct nk_parser *p, uint8_t c, struct nk_err *err)
{
    int code = llhttp_get_errno(&p->core);
    bool wrong_word = code == HPE_INVALID_VERSION || code == HPE_INVALID_CONSTANT;

    if (p->text.failed)
        return fail(p, NK_OVERLOADED, "out of memory", err);
    if (p->too_many_fields)
        return fail(p, NK_HEADERS_TOO_LARGE, "too many header fields", err);
    /* One more capital only makes it a method that we do not have; all else makes it no HTTP. */
    if (p->state == AT_METHOD && code == HPE_INVALID_METHOD && c >= 'A' && c <= 'Z')
        return fail_unknown_method(p, err);
    if (p->state == AT_VERSION && wrong_word && memcmp(p->version, "HTTP", 5) == 0)
        return fail_unknown_method(p, err);
    if (p->state == AT_VERSION && wrong_word && !knows_version(p))
        return fail(p, NK_HTTP_VERSION, "only HTTP/1.1 and HTTP/1.0 are spoken here", err);
    p->state = AT_FAILED;
    nk_fail(err, NK_BAD_REQUEST, "malformed request: %.100s", llhttp_get_error_reason(&p->core));
    return NK_PARSE_FAIL;
}

/* Gives llhttp the first `n` bytes. NK_PARSE_MORE unless it refused one of them. */
static enum nk_parse feed(struct nk_parser *p, struct nk_parser_input *in, size_t n,
                          struct nk_err *err)
{
    const uint8_t *data = in->data;
    size_t used = n;
    llhttp_errno_t rc = llhttp_execute(&p->core, (const char *)data, n);

    if (rc != HPE_OK)
        used = (size_t)((const uint8_t *)llhttp_get_error_pos(&p->core) - data);
    if (rc == HPE_PAUSED) {
        llhttp_resume(&p->core);
        rc = HPE_OK;
    }
    in->data += used;
    in->len -= used;
    p->state_used += used;
    if (!p->headers_over)
        p->head_used += used;
    return rc == HPE_OK ? NK_PARSE_MORE : fail_core(p, used < n ? *in->data : 0, err);
}

static void go(struct nk_parser *p, enum state state)
{
    p->state = state;
    p->state_used = 0;
}

static enum nk_parse step_lead(struct nk_parser *p, struct nk_parser_input *in, struct nk_err *err)
{
    size_t n = 0;

    while (n < in->len && (in->data[n] == '\r' || in->data[n] == '\n'))
        n++;
    if (n < in->len)
        go(p, AT_METHOD);
    return n > 0 ? feed(p, in, n, err) : NK_PARSE_MORE;
}

static enum nk_parse step_method(struct nk_parser *p, struct nk_parser_input *in,
                                 struct nk_err *err)
{
    const uint8_t *space = memchr(in->data, ' ', in->len);
    enum nk_parse result = feed(p, in, space ? (size_t)(space - in->data) + 1 : in->len, err);

    if (result == NK_PARSE_MORE && space)
        go(p, AT_TARGET);
    return result;
}

static bool ends_target(uint8_t c)
{
    return c == ' ' || c == '#' || c == '\r' || c == '\n';
}

static enum nk_parse step_target(struct nk_parser *p, struct nk_parser_input *in,
                                 struct nk_err *err)
{
    size_t max = p->limits.url_max - p->state_used;
    size_t n = 0;

    while (n < in->len && n < max && !ends_target(in->data[n]))
        n++;
    bool found = n < in->len;
    uint8_t c = found ? in->data[n] : 0;
    bool ends = found && ends_target(c);

    if (ends && c == ' ' && p->state_used + n > 0)
        n++;
    enum nk_parse result = n > 0 ? feed(p, in, n, err) : NK_PARSE_MORE;

    if (result != NK_PARSE_MORE || !found)
        return result;
    if (!ends)
        return fail(p, NK_URI_TOO_LONG, "the request target is too long", err);
    if (c == '#')
        return fail(p, NK_BAD_REQUEST, "a request target has no fragment", err);
    if (c != ' ')
        return fail(p, NK_HTTP_VERSION, "only HTTP/1.1 and HTTP/1.0 are spoken here", err);
    if (p->state_used == 0)
        return fail(p, NK_BAD_REQUEST, "two spaces in the request line", err);
    go(p, AT_VERSION);
    return NK_PARSE_MORE;
}

/* Byte by byte, so that `version` holds what llhttp has seen when it refuses one. */
static enum nk_parse step_version(struct nk_parser *p, struct nk_parser_input *in,
                                  struct nk_err *err)
{
    uint8_t c = in->data[0];

    if (p->state_used == 0 && c == ' ')
        return fail(p, NK_BAD_REQUEST, "two spaces in the request line", err);
    if (p->state_used < sizeof p->version)
        p->version[p->state_used] = (char)c;
    enum nk_parse result = feed(p, in, 1, err);

    if (result != NK_PARSE_MORE || c != '\n')
        return result;
    if (!knows_version(p))
        return fail(p, NK_HTTP_VERSION, "only HTTP/1.1 and HTTP/1.0 are spoken here", err);
    go(p, AT_FIELDS);
    return NK_PARSE_MORE;
}

static void fill_head(struct nk_parser *p)
{
    struct nk_head *h = &p->head;

    h->http10 = p->core.http_minor == 0;
    h->method = method_of(p->core.method);
    h->chunked = (p->core.flags & F_CHUNKED) != 0;
    h->has_body = h->chunked || p->core.content_length > 0;
    if (!h->chunked && (p->core.flags & F_CONTENT_LENGTH))
        h->content_length =
            p->core.content_length > INT64_MAX ? INT64_MAX : (int64_t)p->core.content_length;
    h->keep_alive = llhttp_should_keep_alive(&p->core) != 0;
    h->connection_upgrade = (p->core.flags & F_CONNECTION_UPGRADE) != 0;
    h->fields = (const char *)p->text.data + p->target_len + 1;
}

static enum nk_parse end_head(struct nk_parser *p, struct nk_err *err)
{
    fill_head(p);
    if (p->core.method == HTTP_CONNECT)
        return fail(p, NK_BAD_REQUEST, "CONNECT is not for here", err);
    if (nk_head_check(&p->head, err) < 0 || nk_url_split(&p->text, &p->head, err) < 0) {
        p->state = AT_FAILED;
        return NK_PARSE_FAIL;
    }
    p->left = p->head.has_body && !p->head.chunked ? p->core.content_length : 0;
    go(p, p->head.chunked ? AT_CHUNK_LINE : p->left > 0 ? AT_LENGTH_BODY : AT_DONE);
    return NK_PARSE_HEAD;
}

static enum nk_parse step_fields(struct nk_parser *p, struct nk_parser_input *in,
                                 struct nk_err *err)
{
    size_t max = p->head_used < p->limits.header_max ? p->limits.header_max - p->head_used : 0;
    enum nk_parse result = feed(p, in, in->len < max ? in->len : max, err);

    if (result != NK_PARSE_MORE)
        return result;
    if (p->headers_over)
        return end_head(p, err);
    if (in->len > 0)
        return fail(p, NK_HEADERS_TOO_LARGE, "the headers are too large", err);
    return NK_PARSE_MORE;
}

/* A run of body bytes: of the whole body, or of one chunk. */
static enum nk_parse step_data(struct nk_parser *p, struct nk_parser_input *in, struct nk_err *err)
{
    size_t n = in->len < p->left ? in->len : (size_t)p->left;

    p->body_len = 0;
    if (feed(p, in, n, err) == NK_PARSE_FAIL)
        return NK_PARSE_FAIL;
    p->left -= n;
    in->body = p->body;
    in->body_len = p->body_len;
    if (p->left == 0)
        go(p, p->state == AT_CHUNK_DATA ? AT_CHUNK_END : AT_DONE);
    return in->body_len > 0 ? NK_PARSE_BODY : NK_PARSE_MORE;
}

static enum nk_parse step_chunk_end(struct nk_parser *p, struct nk_parser_input *in,
                                    struct nk_err *err)
{
    size_t want = 2 - p->state_used;
    enum nk_parse result = feed(p, in, in->len < want ? in->len : want, err);

    if (result == NK_PARSE_MORE && p->state_used == 2)
        go(p, AT_CHUNK_LINE);
    return result;
}

static enum nk_parse step_chunk_line(struct nk_parser *p, struct nk_parser_input *in,
                                     struct nk_err *err)
{
    size_t max = p->limits.chunk_line_max + 2 - p->state_used;
    size_t seen = in->len < max ? in->len : max;
    const uint8_t *lf = memchr(in->data, '\n', seen);
    enum nk_parse result = feed(p, in, lf ? (size_t)(lf - in->data) + 1 : seen, err);

    if (result != NK_PARSE_MORE)
        return result;
    if (lf)
        go(p, p->left > 0 ? AT_CHUNK_DATA : AT_TRAILER);
    else if (p->state_used == p->limits.chunk_line_max + 2)
        return fail(p, NK_BAD_REQUEST, "a chunk line is too long", err);
    return NK_PARSE_MORE;
}

static enum nk_parse step_trailer(struct nk_parser *p, struct nk_parser_input *in,
                                  struct nk_err *err)
{
    size_t max = NK_PARSER_TRAILER_MAX - p->state_used;
    enum nk_parse result = feed(p, in, in->len < max ? in->len : max, err);

    if (result != NK_PARSE_MORE)
        return result;
    if (p->message_over)
        go(p, AT_DONE);
    else if (in->len > 0)
        return fail(p, NK_HEADERS_TOO_LARGE, "the trailers are too large", err);
    return NK_PARSE_MORE;
}

static enum nk_parse step_state(struct nk_parser *p, struct nk_parser_input *in, struct nk_err *err)
{
    switch (p->state) {
    case AT_LEAD:
        return step_lead(p, in, err);
    case AT_METHOD:
        return step_method(p, in, err);
    case AT_TARGET:
        return step_target(p, in, err);
    case AT_VERSION:
        return step_version(p, in, err);
    case AT_FIELDS:
        return step_fields(p, in, err);
    case AT_LENGTH_BODY:
    case AT_CHUNK_DATA:
        return step_data(p, in, err);
    case AT_CHUNK_LINE:
        return step_chunk_line(p, in, err);
    case AT_CHUNK_END:
        return step_chunk_end(p, in, err);
    case AT_TRAILER:
        return step_trailer(p, in, err);
    default:
        return fail(p, NK_BAD_REQUEST, "the connection is unusable", err);
    }
}

enum nk_parse nk_parser_step(struct nk_parser *p, struct nk_parser_input *in, struct nk_err *err)
{
    enum nk_parse result = NK_PARSE_MORE;

    while (result == NK_PARSE_MORE && p->state != AT_DONE) {
        if (in->len == 0)
            return NK_PARSE_MORE;
        if (p->state < AT_FIELDS && p->head_used >= p->limits.header_max)
            return fail(p, NK_HEADERS_TOO_LARGE, "the headers are too large", err);
        result = step_state(p, in, err);
    }
    return result == NK_PARSE_MORE ? NK_PARSE_END : result;
}

const struct nk_head *nk_parser_head(const struct nk_parser *p)
{
    return &p->head;
}

uint64_t nk_parser_skip(struct nk_parser *p, uint64_t n)
{
    p->left -= n;
    p->core.content_length -= n;
    return p->state == AT_LENGTH_BODY ? p->left - 1 : 0;
}

bool nk_parser_is_blank(const struct nk_parser *p)
{
    return p->state == AT_LEAD;
}
