/* Bodies that move between a socket and a pipe by themselves. */
#include "toy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define SIZE 300000u

/* One for the program: what the routes below do, and with what. */
static struct direct {
    struct nk_source src;
    struct nk_req *req;
    int pipe[2];
    size_t sent, pulled; /* bytes that went by themselves, and those that were copied */
    size_t send_max;     /* in one go; 0: any */
    size_t fail_from;    /* bytes that have gone before it cannot go on by itself */
    bool fails;          /* nor by copies */
    size_t taken, given; /* of a body: likewise */
    unsigned full;       /* times that there is no room */
    bool over;
} direct;

static enum nk_pull on_pull(struct nk_source *src, struct nk_buf *out, size_t room)
{
    uint8_t *to = nk_buf_reserve(out, room);
    ssize_t n = to && !direct.fails ? read(direct.pipe[0], to, room) : -1;

    (void)src;
    if (n > 0) {
        nk_buf_commit(out, (size_t)n);
        direct.pulled += (size_t)n;
        return NK_PULL_MORE;
    }
    return n == 0 ? NK_PULL_END : NK_PULL_FAIL;
}

static size_t on_ready(struct nk_source *src)
{
    (void)src;
    return direct.sent < direct.fail_from ? SIZE - direct.sent - direct.pulled : 0;
}

static ssize_t on_send(struct nk_source *src, int socket, size_t len)
{
    ssize_t n;

    (void)src;
    if (direct.sent >= direct.fail_from)
        return -EINVAL;
    if (direct.send_max > 0 && len > direct.send_max)
        len = direct.send_max;
    n = splice(direct.pipe[0], NULL, socket, NULL, len, SPLICE_F_NONBLOCK);
    direct.sent += n > 0 ? (size_t)n : 0;
    return n < 0 ? -errno : n;
}

static void on_close(struct nk_req *req, void *ctx, bool gone)
{
    (void)req;
    (void)ctx;
    (void)gone;
    direct.over = true;
}

static int get_stream(struct nk_req *req, struct nk_err *err)
{
    bool fixed = false;

    if (nk_req_query_bool(req, "fixed", &fixed, err) < 0)
        return -1;
    nk_req_on_close(req, on_close, NULL);
    nk_reply_stream(req, 200, "text/plain", &direct.src, fixed ? (int64_t)SIZE : -1);
    return 0;
}

static int on_data(struct nk_req *req, const void *data, size_t len, struct nk_err *err)
{
    (void)req;
    (void)err;
    direct.given += len;
    return write(direct.pipe[1], data, len) == (ssize_t)len ? 0 : -1;
}

static ssize_t on_take(struct nk_req *req, int socket, uint64_t max)
{
    ssize_t n;

    if (direct.full > 0) {
        direct.full--;
        nk_req_pause_body(req, true);
        return -EAGAIN;
    }
    n = splice(socket, NULL, direct.pipe[1], NULL, (size_t)max, SPLICE_F_NONBLOCK);
    direct.taken += n > 0 ? (size_t)n : 0;
    return n > 0 ? n : 0;
}

static int on_end(struct nk_req *req, struct nk_err *err)
{
    (void)err;
    nk_reply_bytes(req, 200, NULL, "all", 3);
    return 0;
}

static int put_body(struct nk_req *req, struct nk_err *err)
{
    static const struct nk_body_sink sink = {
        .on_data = on_data, .on_end = on_end, .on_take = on_take};

    (void)err;
    direct.req = req;
    nk_req_on_close(req, on_close, NULL);
    nk_req_set_body_sink(req, &sink);
    return 0;
}

static const struct nk_route routes[] = {
    {"GET", "/stream", "stream", get_stream, .query = {"fixed"}},
    {"PUT", "/body", "body", put_body, .body = NK_BODY_STREAM},
};

/* With a pipe that holds SIZE bytes, of which `fill` are in it and no more will be. */
static void start(struct toy *t, size_t fill)
{
    char *text = malloc(SIZE);

    direct = (struct direct){.src = {on_pull, on_ready, on_send}, .fail_from = SIZE};
    assert_int_equal(pipe2(direct.pipe, O_CLOEXEC | O_NONBLOCK), 0);
    assert_true(fcntl(direct.pipe[1], F_SETPIPE_SZ, 1 << 20) >= (int)SIZE);
    assert_non_null(text);
    for (size_t i = 0; i < SIZE; i++)
        text[i] = (char)('a' + i % 23);
    if (fill > 0) {
        assert_int_equal(write(direct.pipe[1], text, fill), fill);
        assert_int_equal(close(direct.pipe[1]), 0);
        direct.pipe[1] = -1;
    }
    free(text);
    toy_init(t);
    t->cfg.routes = routes;
    t->cfg.route_count = NK_COUNT(routes);
    toy_open(t);
    toy_connect(t);
}

static void stop(struct toy *t)
{
    toy_stop(t);
    (void)close(direct.pipe[0]);
    if (direct.pipe[1] >= 0)
        (void)close(direct.pipe[1]);
}

/* Until the request is over and that many bytes behind the head have come. */
static void expect_body(struct toy *t, size_t least)
{
    const char *head_end = NULL;

    toy_begin_wait(t);
    for (;;) {
        toy_read(t);
        head_end = toy_find(t, "\r\n\r\n");
        if (t->late ||
            (direct.over && head_end && (size_t)(t->reply + t->reply_len - head_end - 4) >= least))
            break;
        (void)uv_run(&t->loop, UV_RUN_ONCE);
    }
    assert_false(t->late);
    toy_end_wait(t);
}

static void check_bytes(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        assert_int_equal(at[i], 'a' + i % 23);
}

/* The body of a chunked answer, which replaces it in the toy. */
static size_t decode(struct toy *t)
{
    char *at = strstr(t->reply, "\r\n\r\n") + 4;
    char *to = t->reply;
    unsigned long n = 1;

    while (n > 0) {
        char *line_end = NULL;

        n = strtoul(at, &line_end, 16);
        assert_memory_equal(line_end, "\r\n", 2);
        memmove(to, line_end + 2, n);
        to += n;
        assert_memory_equal(line_end + 2 + n, "\r\n", 2);
        at = line_end + 4 + n;
    }
    assert_ptr_equal(at, t->reply + t->reply_len);
    return (size_t)(to - t->reply);
}

static void what_a_source_sends_by_itself_comes_in_chunks(void **state)
{
    struct toy t;

    (void)state;
    start(&t, SIZE);
    toy_say(&t, GET("/stream"));
    toy_expect(&t, "\r\n0\r\n\r\n");
    assert_int_equal(decode(&t), SIZE);
    check_bytes(t.reply, SIZE);
    assert_int_equal(direct.sent, SIZE);
    assert_int_equal(direct.pulled, 0);
    assert_true(nk_server_stats(t.server)->bytes_out > SIZE);
    stop(&t);
}

static void it_comes_whole_in_small_pieces(void **state)
{
    struct toy t;

    (void)state;
    start(&t, SIZE);
    direct.send_max = 999;
    toy_say(&t, GET("/stream"));
    toy_expect(&t, "\r\n0\r\n\r\n");
    assert_int_equal(decode(&t), SIZE);
    check_bytes(t.reply, SIZE);
    stop(&t);
}

static void a_length_that_was_declared_has_no_frames(void **state)
{
    struct toy t;

    (void)state;
    start(&t, SIZE);
    toy_say(&t, GET("/stream?fixed=true"));
    expect_body(&t, SIZE);
    assert_int_equal(direct.sent, SIZE);
    assert_int_equal(t.reply + t.reply_len - (strstr(t.reply, "\r\n\r\n") + 4), SIZE);
    check_bytes(strstr(t.reply, "\r\n\r\n") + 4, SIZE);
    stop(&t);
}

static void an_old_client_gets_no_frames(void **state)
{
    struct toy t;

    (void)state;
    start(&t, SIZE);
    toy_say(&t, "GET /stream HTTP/1.0\r\n\r\n");
    toy_expect_end(&t);
    assert_int_equal(t.reply + t.reply_len - (strstr(t.reply, "\r\n\r\n") + 4), SIZE);
    check_bytes(strstr(t.reply, "\r\n\r\n") + 4, SIZE);
    stop(&t);
}

static void what_it_cannot_send_after_all_is_copied(void **state)
{
    struct toy t;

    (void)state;
    start(&t, SIZE);
    direct.send_max = 1000;
    direct.fail_from = 70000;
    toy_say(&t, GET("/stream"));
    toy_expect(&t, "\r\n0\r\n\r\n");
    assert_int_equal(decode(&t), SIZE);
    check_bytes(t.reply, SIZE);
    assert_int_equal(direct.sent, 70000);
    assert_int_equal(direct.pulled, SIZE - 70000);
    stop(&t);
}

static void a_source_that_fails_within_a_chunk_is_cut(void **state)
{
    struct toy t;

    (void)state;
    start(&t, SIZE);
    direct.send_max = 1000;
    direct.fail_from = 70000;
    direct.fails = true;
    toy_say(&t, GET("/stream"));
    toy_expect_end(&t);
    assert_true(direct.over);
    assert_null(toy_find(&t, "\r\n0\r\n"));
    assert_true(t.reply_len < SIZE);
    stop(&t);
}

static void put_all(struct toy *t)
{
    char *body = malloc(SIZE);
    char head[100];

    assert_non_null(body);
    for (size_t i = 0; i < SIZE; i++)
        body[i] = (char)('a' + i % 23);
    (void)snprintf(head, sizeof head, "PUT /body HTTP/1.1\r\nHost: x\r\nContent-Length: %u\r\n\r\n",
                   SIZE);
    toy_say(t, head);
    toy_send(t, body, SIZE);
    free(body);
}

static void check_pipe(void)
{
    char *text = malloc(SIZE);

    assert_non_null(text);
    assert_int_equal(read(direct.pipe[0], text, SIZE), SIZE);
    check_bytes(text, SIZE);
    free(text);
}

static void a_body_goes_where_its_sink_takes_it(void **state)
{
    struct toy t;

    (void)state;
    start(&t, 0);
    put_all(&t);
    toy_expect(&t, "\r\n\r\nall");
    assert_int_equal(direct.taken + direct.given, SIZE);
    assert_true(direct.taken > 0);
    assert_true(direct.given > 0); /* the end of it always comes to be looked at */
    check_pipe();
    assert_true(nk_server_stats(t.server)->bytes_in > SIZE);
    stop(&t);
}

static void on_room(uv_timer_t *timer)
{
    (void)timer;
    if (direct.req && !direct.over)
        nk_req_pause_body(direct.req, false);
}

static void a_sink_without_room_is_asked_again_when_it_has_some(void **state)
{
    struct toy t;
    uv_timer_t timer;

    (void)state;
    start(&t, 0);
    direct.full = 3;
    assert_int_equal(uv_timer_init(&t.loop, &timer), 0);
    assert_int_equal(uv_timer_start(&timer, on_room, 1, 1), 0);
    put_all(&t);
    toy_expect(&t, "\r\n\r\nall");
    assert_int_equal(direct.full, 0);
    assert_true(direct.taken > 0);
    check_pipe();
    uv_close((uv_handle_t *)&timer, NULL);
    stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_source_sends_by_itself_comes_in_chunks),
        cmocka_unit_test(it_comes_whole_in_small_pieces),
        cmocka_unit_test(a_length_that_was_declared_has_no_frames),
        cmocka_unit_test(an_old_client_gets_no_frames),
        cmocka_unit_test(what_it_cannot_send_after_all_is_copied),
        cmocka_unit_test(a_source_that_fails_within_a_chunk_is_cut),
        cmocka_unit_test(a_body_goes_where_its_sink_takes_it),
        cmocka_unit_test(a_sink_without_room_is_asked_again_when_it_has_some),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
