#include "toy.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"

static struct toy *toy_of(struct nk_req *req)
{
    return nk_req_app(req);
}

static void toy_on_close(struct nk_req *req, void *ctx, bool gone)
{
    struct toy *t = ctx;

    assert_ptr_equal(toy_of(req), t);
    t->closed++;
    t->gone += gone;
    if (t->held == req)
        t->held = NULL;
}

static int toy_hello(struct nk_req *req, struct nk_err *err)
{
    (void)err;
    toy_of(req)->handled++;
    nk_req_on_close(req, toy_on_close, toy_of(req));
    nk_reply_bytes(req, 200, "text/plain", "hello", 5);
    return 0;
}

static int toy_echo(struct nk_req *req, struct nk_err *err)
{
    const char *text = nk_json_str(nk_json_get(nk_req_json(req), "text"));
    struct nk_buf out = {0};

    toy_of(req)->handled++;
    if (!text)
        return nk_fail(err, NK_BAD_REQUEST, "text is missing");
    nk_buf_add_str(&out, text);
    nk_reply_take(req, 200, "text/plain", &out);
    return 0;
}

static int toy_name(struct nk_req *req, struct nk_err *err)
{
    const char *name = nk_req_param(req, "name");
    const char *tail = nk_req_query(req, "tail");

    (void)err;
    nk_reply_header(req, "X-Tail", tail ? tail : "none");
    nk_reply_bytes(req, 200, "text/plain", name, strlen(name));
    return 0;
}

static int toy_on_data(struct nk_req *req, const void *data, size_t len, struct nk_err *err)
{
    struct toy *t = toy_of(req);

    if (len > 0 && memchr(data, '!', len))
        return nk_fail(err, NK_CONFLICT, "no exclamation marks");
    t->uploaded += len;
    if (t->pause_upload)
        nk_req_pause_body(req, true);
    return 0;
}

static int toy_on_end(struct nk_req *req, struct nk_err *err)
{
    char text[32];

    (void)err;
    toy_of(req)->ended++;
    snprintf(text, sizeof text, "%zu", toy_of(req)->uploaded);
    nk_reply_bytes(req, 200, "text/plain", text, strlen(text));
    return 0;
}

static const struct nk_body_sink toy_sink = {toy_on_data, toy_on_end};

static int toy_upload(struct nk_req *req, struct nk_err *err)
{
    (void)err;
    toy_of(req)->handled++;
    toy_of(req)->held = req;
    nk_req_on_close(req, toy_on_close, toy_of(req));
    nk_req_set_body_sink(req, &toy_sink);
    return 0;
}

static void toy_on_half(struct nk_req *req, void *ctx)
{
    (void)req;
    ((struct toy *)ctx)->half++;
}

static int toy_later(struct nk_req *req, struct nk_err *err)
{
    (void)err;
    toy_of(req)->handled++;
    toy_of(req)->held = req;
    nk_req_on_close(req, toy_on_close, toy_of(req));
    nk_req_on_half_close(req, toy_on_half, toy_of(req));
    return 0;
}

static int toy_end(struct nk_req *req, struct nk_err *err)
{
    struct toy *t = toy_of(req);

    (void)err;
    t->handled++;
    nk_req_on_close(req, toy_on_close, t);
    nk_server_close(&t->server);
    nk_reply_bytes(req, 200, NULL, "end", 3);
    return 0;
}

static enum nk_pull toy_pull(struct nk_source *src, struct nk_buf *out, size_t room)
{
    struct toy_source *s = (struct toy_source *)src;
    size_t n = s->left < room ? s->left : room;
    uint8_t *at;

    if (s->dry)
        return NK_PULL_WAIT;
    if (n == 0)
        return s->end;
    at = nk_buf_reserve(out, n);
    if (!at)
        return NK_PULL_FAIL;
    memset(at, 'x', n);
    nk_buf_commit(out, n);
    s->pulled += n;
    if (s->left != SIZE_MAX)
        s->left -= n;
    return NK_PULL_MORE;
}

static int toy_stream(struct nk_req *req, struct nk_err *err)
{
    struct toy *t = toy_of(req);
    uint64_t size = 10;
    bool fixed = false;

    if (nk_req_query_u64(req, "size", SIZE_MAX, &size, err) < 0 ||
        nk_req_query_bool(req, "fixed", &fixed, err) < 0)
        return -1;
    t->source.src.pull = toy_pull;
    t->source.req = req;
    t->source.left = size;
    t->held = req;
    nk_req_on_close(req, toy_on_close, t);
    nk_reply_stream(req, 200, "text/plain", &t->source.src, fixed ? (int64_t)size : -1);
    return 0;
}

static int toy_file(struct nk_req *req, struct nk_err *err)
{
    uint64_t size = 0;
    uint64_t shown = 0;
    FILE *file = tmpfile();

    if (nk_req_query_u64(req, "size", SIZE_MAX, &size, err) < 0)
        return -1;
    shown = size;
    if (nk_req_query_u64(req, "shown", SIZE_MAX, &shown, err) < 0)
        return -1;
    assert_non_null(file);
    for (uint64_t i = 0; i < size; i++)
        fputc((int)('a' + i % 26), file);
    fflush(file);
    nk_req_on_close(req, toy_on_close, toy_of(req));
    nk_reply_file(req, 200, "application/octet-stream", dup(fileno(file)), 0, shown);
    fclose(file);
    return 0;
}

static void toy_on_ws(struct nk_req *req, const void *data, size_t len)
{
    struct toy *t = toy_of(req);

    if (len == 0) {
        t->ended++;
        return;
    }
    assert_true(t->got_len + len < sizeof t->got);
    memcpy(t->got + t->got_len, data, len);
    t->got_len += len;
}

static int toy_ws(struct nk_req *req, struct nk_err *err)
{
    struct toy *t = toy_of(req);
    struct nk_upgrade up = {toy_on_ws, &t->source.src};

    (void)err;
    t->source.src.pull = toy_pull;
    t->source.left = 4;
    t->held = req;
    nk_req_on_close(req, toy_on_close, t);
    nk_reply_header(req, "Sec-WebSocket-Accept", "yes");
    nk_reply_upgrade(req, &up);
    return 0;
}

static const struct nk_route toy_routes[] = {
    {"GET", "/healthz", "health", toy_hello},
    {"GET", "/hello", "hello", toy_hello},
    {"POST", "/echo", "echo", toy_echo, .body = NK_BODY_JSON, .body_max = 4096},
    {"POST", "/opt", "opt", toy_hello, .body = NK_BODY_JSON_OPT},
    {"GET", "/names/{name}", "name", toy_name, .query = {"tail"}},
    {"DELETE", "/names/{name}", "nameDelete", toy_name},
    {"PUT", "/upload", "upload", toy_upload, .body = NK_BODY_STREAM},
    {"POST", "/exec", "execUpload", toy_upload, .body = NK_BODY_EXEC},
    {"POST", "/v1/exec", "exec", toy_hello, .body = NK_BODY_EXEC},
    {"GET", "/v1/exec/ws", "execWs", toy_ws, .websocket = 1},
    {"GET", "/end", "end", toy_end},
    {"GET", "/later", "later", toy_later, .query = {"n", "flag"}},
    {"GET", "/stream", "stream", toy_stream, .query = {"size", "fixed"}},
    {"GET", "/file", "file", toy_file, .query = {"size", "shown"}},
    {"GET", "/ws", "ws", toy_ws, .websocket = 1},
};

static int toy_gate(struct nk_req *req, struct nk_err *err)
{
    if (nk_req_header(req, "x-stranger"))
        return nk_fail(err, NK_UNAUTHORIZED, "no");
    return 0;
}

/* The number is what the clients of these tests look at; api/problem.c has the real table. */
static int toy_status(enum nk_code code)
{
    static const struct {
        enum nk_code code;
        int status;
    } table[] = {
        {NK_BAD_REQUEST, 400},        {NK_BAD_JSON, 400},
        {NK_UNAUTHORIZED, 401},       {NK_NOT_FOUND, 404},
        {NK_METHOD_NOT_ALLOWED, 405}, {NK_TIMEOUT, 408},
        {NK_CONFLICT, 409},           {NK_TOO_LARGE, 413},
        {NK_URI_TOO_LONG, 414},       {NK_UNSUPPORTED_MEDIA_TYPE, 415},
        {NK_EXPECTATION_FAILED, 417}, {NK_UPGRADE_REQUIRED, 426},
        {NK_HEADERS_TOO_LARGE, 431},  {NK_NOT_SUPPORTED, 501},
        {NK_OVERLOADED, 503},         {NK_HTTP_VERSION, 505},
        {NK_BAD_GATEWAY, 502},        {NK_GATEWAY_TIMEOUT, 504},
    };

    for (size_t i = 0; i < NK_COUNT(table); i++) {
        if (table[i].code == code)
            return table[i].status;
    }
    return 500;
}

static void toy_problem(struct nk_req *req, const struct nk_err *err)
{
    nk_reply_bytes(req, toy_status(err->code), "text/plain", err->msg, strlen(err->msg));
}

static void toy_finished(struct nk_req *req, int status, bool gone)
{
    (void)gone;
    toy_of(req)->finished++;
    toy_of(req)->last_status = status;
}

static void toy_on_limit(uv_timer_t *timer)
{
    ((struct toy *)timer->data)->late = true;
}

/* A server with small limits; tests change t->cfg.limits before toy_listen where they need others. */
void toy_init(struct toy *t)
{
    *t = (struct toy){.fd = -1, .source.end = NK_PULL_END};
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(uv_loop_init(&t->loop), 0);
    assert_int_equal(uv_timer_init(&t->loop, &t->limit), 0);
    t->limit.data = t;
    assert_int_equal(nk_jobs_new(&t->loop, &t->jobs), 0);
    t->cfg = (struct nk_server_config){
        .routes = toy_routes,
        .route_count = NK_COUNT(toy_routes),
        .hooks = {toy_gate, toy_problem, toy_finished, t},
        .limits = {.header_max = 16384,
                   .header_lines_max = 100,
                   .url_max = 8192,
                   .chunk_line_max = 256,
                   .json_max = 65536,
                   .upload_max = 1 << 20,
                   .conns_max = 100,
                   .conns_reserved = 2},
        .instance = "toy",
        .jobs = t->jobs,
    };
}

void toy_open(struct toy *t)
{
    assert_int_equal(nk_server_open(&t->loop, &t->cfg, &t->server), 0);
}

/* Another client; the connection of the one before lives on. */
void toy_connect(struct toy *t)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    t->fd = pair[1];
    assert_int_equal(nk_conn_open(t->server, pair[0], true, false), 0);
}

void toy_start(struct toy *t)
{
    toy_init(t);
    toy_open(t);
    toy_connect(t);
}

void toy_drop(struct toy *t)
{
    if (t->fd >= 0)
        (void)close(t->fd);
    t->fd = -1;
}

void toy_forget(struct toy *t)
{
    free(t->reply);
    t->reply = NULL;
    t->reply_len = 0;
    t->reply_over = false;
}

void toy_stop(struct toy *t)
{
    toy_drop(t);
    toy_forget(t);
    nk_server_close(&t->server);
    uv_close((uv_handle_t *)&t->limit, NULL);
    uv_run(&t->loop, UV_RUN_DEFAULT);
    nk_jobs_free(t->jobs);
    uv_run(&t->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&t->loop), 0);
}

void toy_begin_wait(struct toy *t)
{
    t->late = false;
    assert_int_equal(uv_timer_start(&t->limit, toy_on_limit, TOY_WAIT_MS, 0), 0);
}

void toy_end_wait(struct toy *t)
{
    (void)uv_timer_stop(&t->limit);
}

/* Everything that can be done without waiting is done. */
void toy_turn(struct toy *t)
{
    for (int i = 0; i < 8; i++)
        uv_run(&t->loop, UV_RUN_NOWAIT);
}

void toy_pass(struct toy *t, unsigned ms)
{
    t->late = false;
    assert_int_equal(uv_timer_start(&t->limit, toy_on_limit, ms, 0), 0);
    while (!t->late)
        uv_run(&t->loop, UV_RUN_ONCE);
}

void toy_send(struct toy *t, const void *data, size_t len)
{
    size_t done = 0;

    toy_begin_wait(t);
    while (done < len && !t->late) {
        ssize_t n = send(t->fd, (const char *)data + done, len - done, MSG_NOSIGNAL);

        if (n > 0)
            done += (size_t)n;
        else if (errno != EAGAIN)
            break;
        uv_run(&t->loop, UV_RUN_NOWAIT);
    }
    toy_end_wait(t);
    toy_turn(t);
}

void toy_say(struct toy *t, const char *text)
{
    toy_send(t, text, strlen(text));
}

/* Reads what is there. */
void toy_read(struct toy *t)
{
    for (;;) {
        char *grown = realloc(t->reply, t->reply_len + 65537);
        ssize_t n;

        assert_non_null(grown);
        t->reply = grown;
        n = recv(t->fd, t->reply + t->reply_len, 65536, MSG_DONTWAIT);
        t->reply[t->reply_len + (n > 0 ? (size_t)n : 0)] = '\0';
        if (n <= 0) {
            t->reply_over |= n == 0 || errno != EAGAIN;
            return;
        }
        t->reply_len += (size_t)n;
    }
}

const char *toy_find(const struct toy *t, const char *text)
{
    return t->reply ? memmem(t->reply, t->reply_len, text, strlen(text)) : NULL;
}

void toy_expect(struct toy *t, const char *text)
{
    toy_begin_wait(t);
    for (toy_read(t); !toy_find(t, text) && !t->late && !t->reply_over; toy_read(t))
        uv_run(&t->loop, UV_RUN_ONCE);
    toy_end_wait(t);
    if (!toy_find(t, text))
        fail_msg("wanted: %s\ngot: %.2000s", text, t->reply);
}

void toy_expect_end(struct toy *t)
{
    toy_begin_wait(t);
    for (toy_read(t); !t->reply_over && !t->late; toy_read(t))
        uv_run(&t->loop, UV_RUN_ONCE);
    toy_end_wait(t);
    assert_true(t->reply_over);
}

void toy_wait(struct toy *t, const unsigned *counter, unsigned least)
{
    toy_begin_wait(t);
    while (*counter < least && !t->late)
        uv_run(&t->loop, UV_RUN_ONCE);
    toy_end_wait(t);
    assert_true(*counter >= least);
}

size_t toy_count(const struct toy *t, const char *text)
{
    size_t n = 0;
    const char *at = t->reply;

    while (at && (at = strstr(at, text)) != NULL) {
        n++;
        at++;
    }
    return n;
}
