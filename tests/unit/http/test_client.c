#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "http/client.h"

/* A server of one connection: reads until `until` has come, says its piece in steps, hangs up. */
struct server {
    char dir[32], path[64];
    int listener;
    pthread_t thread;
    const char *until; /* NULL: answers at once, reads nothing */
    const char *answer;
    size_t step;
    bool silent; /* keeps the connection until the client goes */
    char got[8192];
    size_t got_len;
};

static void read_request(struct server *s, int fd)
{
    while (s->until && s->got_len < sizeof s->got - 1) {
        ssize_t n = read(fd, s->got + s->got_len, sizeof s->got - 1 - s->got_len);

        if (n <= 0)
            return;
        s->got_len += (size_t)n;
        s->got[s->got_len] = '\0';
        if (strstr(s->got, s->until))
            return;
    }
}

static void *serve(void *arg)
{
    struct server *s = arg;
    int fd = accept(s->listener, NULL, NULL);
    size_t len = strlen(s->answer);
    char byte;

    read_request(s, fd);
    for (size_t at = 0; at < len; at += s->step) {
        size_t n = at + s->step < len ? s->step : len - at;

        if (send(fd, s->answer + at, n, MSG_NOSIGNAL) < 0)
            break;
    }
    while (s->silent && read(fd, &byte, 1) > 0) {
    }
    (void)close(fd);
    return NULL;
}

static void start(struct server *s)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    if (s->step == 0)
        s->step = 1000000;
    (void)snprintf(s->dir, sizeof s->dir, "/tmp/nook-client-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    (void)snprintf(s->path, sizeof s->path, "%s/s", s->dir);
    memcpy(a.sun_path, s->path, sizeof s->path);
    s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->listener, 1), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(struct server *s)
{
    (void)pthread_join(s->thread, NULL);
    (void)close(s->listener);
    (void)unlink(s->path);
    (void)rmdir(s->dir);
}

static struct nk_client *connect_to(const struct server *s, const char *token, unsigned timeout_ms)
{
    const struct nk_client_target target = {
        .socket = s->path, .token = token, .timeout_ms = timeout_ms};
    struct nk_client *c = NULL;
    struct nk_err err;

    assert_int_equal(nk_client_new(&target, &c, &err), 0);
    return c;
}

static int ask(struct nk_client *c, int *out_status, struct nk_buf *out, struct nk_err *err)
{
    const struct nk_client_request req = {.method = "GET", .path = "/x"};
    bool end = false;

    if (nk_client_send(c, &req, err) < 0 || nk_client_read_head(c, out_status, err) < 0)
        return -1;
    while (!end) {
        if (nk_client_read_body(c, out, &end, err) < 0)
            return -1;
    }
    return 0;
}

static int call(struct server *s, int *out_status, struct nk_buf *body, struct nk_err *err)
{
    struct nk_client *c;
    int rc;

    start(s);
    c = connect_to(s, NULL, 20000);
    rc = ask(c, out_status, body, err);
    nk_client_free(c);
    stop(s);
    return rc;
}

static int send_it(struct nk_client *c, const char *method, const char *path,
                   const char *const *headers, const void *body, int64_t len)
{
    const struct nk_client_request req = {
        .method = method, .path = path, .headers = headers, .body = body, .body_len = len};

    return nk_client_send(c, &req, NULL);
}

static void an_answer_arrives_whole_in_pieces_of_any_size(void **state)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                 "6\r\nhello,\r\n6\r\n world\r\n0\r\n\r\n";

    (void)state;
    for (size_t step = 1; step < sizeof answer; step += step < 8 ? 1 : 11) {
        struct server s = {.until = "\r\n\r\n", .answer = answer, .step = step};
        struct nk_buf body = {0};
        struct nk_err err;
        int status = 0;

        assert_int_equal(call(&s, &status, &body, &err), 0);
        assert_int_equal(status, 200);
        assert_int_equal(nk_buf_left(&body), 12);
        assert_memory_equal(nk_buf_front(&body), "hello, world", 12);
        nk_buf_fini(&body);
    }
}

static void a_connection_that_breaks_off_is_an_error_at_every_byte(void **state)
{
    static const char whole[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";

    (void)state;
    for (size_t len = 0; len < sizeof whole - 1; len++) {
        char *answer = strndup(whole, len);
        struct server s = {.until = "\r\n\r\n", .answer = answer};
        struct nk_buf body = {0};
        struct nk_err err;
        int status = 0;

        assert_int_equal(call(&s, &status, &body, &err), -1);
        assert_int_equal(err.code, NK_BAD_GATEWAY);
        nk_buf_fini(&body);
        free(answer);
    }
}

static void the_request_is_as_asked_with_its_token(void **state)
{
    static const char *const headers[] = {"X-A: b", NULL};
    struct server s = {.until = "body!", .answer = "HTTP/1.1 204 x\r\n\r\n"};
    struct nk_client *c;
    struct nk_err err;
    int status = 0;

    (void)state;
    start(&s);
    c = connect_to(&s, "s3cret", 20000);
    assert_int_equal(send_it(c, "POST", "/p?q=1", headers, "body!", 5), 0);
    assert_int_equal(nk_client_read_head(c, &status, &err), 0);
    assert_int_equal(status, 204);
    nk_client_free(c);
    stop(&s);
    assert_string_equal(s.got, "POST /p?q=1 HTTP/1.1\r\nContent-Length: 5\r\nHost: localhost\r\n"
                               "Authorization: Bearer s3cret\r\nX-A: b\r\n\r\nbody!");
}

static void a_streamed_body_goes_out_in_chunks(void **state)
{
    struct server s = {.until = "\r\n0\r\n\r\n",
                       .answer = "HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\n"};
    struct nk_client *c;
    struct nk_err err;
    int status = 0;

    (void)state;
    start(&s);
    c = connect_to(&s, NULL, 20000);
    assert_int_equal(send_it(c, "PUT", "/p", NULL, NULL, -1), 0);
    assert_int_equal(nk_client_send_body(c, "0123456789abcdef0", 17, &err), 0);
    assert_int_equal(nk_client_send_body(c, "", 0, &err), 0);
    assert_int_equal(nk_client_send_body(c, "x", 1, &err), 0);
    assert_int_equal(nk_client_end_body(c, &err), 0);
    assert_int_equal(nk_client_read_head(c, &status, &err), 0);
    nk_client_free(c);
    stop(&s);
    assert_string_equal(strstr(s.got, "\r\n\r\n"),
                        "\r\n\r\n11\r\n0123456789abcdef0\r\n1\r\nx\r\n0\r\n\r\n");
}

static void a_refusal_before_the_body_is_sent_is_read(void **state)
{
    static char piece[65536];
    struct server s = {.answer = "HTTP/1.1 413 x\r\nContent-Length: 0\r\n\r\n", .silent = false};
    struct nk_client *c;
    struct nk_err err;
    int status = 0;

    (void)state;
    start(&s);
    c = connect_to(&s, NULL, 20000);
    assert_int_equal(send_it(c, "PUT", "/p", NULL, NULL, -1), 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(nk_client_send_body(c, piece, sizeof piece, &err), 0);
    assert_int_equal(nk_client_end_body(c, &err), 0);
    assert_int_equal(nk_client_read_head(c, &status, &err), 0);
    assert_int_equal(status, 413);
    nk_client_free(c);
    stop(&s);
}

static void a_silent_server_is_given_up(void **state)
{
    struct server s = {.until = "\r\n\r\n", .answer = "", .silent = true};
    struct nk_client *c;
    struct nk_err err;
    int status;

    (void)state;
    start(&s);
    c = connect_to(&s, NULL, 10);
    assert_int_equal(send_it(c, "GET", "/", NULL, NULL, 0), 0);
    assert_int_equal(nk_client_read_head(c, &status, &err), -1);
    assert_int_equal(err.code, NK_TIMEOUT);
    nk_client_free(c);
    stop(&s);
}

static void bytes_that_came_with_the_head_are_pending(void **state)
{
    struct server s = {.until = "\r\n\r\n",
                       .answer = "HTTP/1.1 200 x\r\nContent-Length: 3\r\n\r\nab",
                       .silent = true};
    struct nk_client *c;
    struct nk_buf body = {0};
    struct nk_err err;
    bool end = true;
    int status;

    (void)state;
    start(&s);
    c = connect_to(&s, NULL, 20000);
    assert_int_equal(send_it(c, "GET", "/", NULL, NULL, 0), 0);
    assert_false(nk_client_pending(c));
    assert_int_equal(nk_client_read_head(c, &status, &err), 0);
    assert_true(nk_client_pending(c));
    assert_int_equal(nk_client_read_body(c, &body, &end, &err), 0);
    assert_int_equal(nk_buf_left(&body), 2);
    assert_false(end);
    assert_false(nk_client_pending(c));
    nk_client_free(c);
    stop(&s);
    nk_buf_fini(&body);
}

static void a_request_that_would_be_two_is_not_sent(void **state)
{
    static const char *const headers[] = {"X-A: b\r\nX-B: c", NULL};
    struct server s = {.until = "never", .answer = ""};
    struct nk_client *c;

    (void)state;
    start(&s);
    c = connect_to(&s, NULL, 20000);
    assert_int_equal(send_it(c, "GET", "/a b", NULL, NULL, 0), -1);
    assert_int_equal(send_it(c, "GET", "/a\r\nX: y", NULL, NULL, 0), -1);
    assert_int_equal(send_it(c, "GET", "a", NULL, NULL, 0), -1);
    assert_int_equal(send_it(c, "G T", "/", NULL, NULL, 0), -1);
    assert_int_equal(send_it(c, "", "/", NULL, NULL, 0), -1);
    assert_int_equal(send_it(c, "GET", "/", headers, NULL, 0), -1);
    nk_client_free(c);
    stop(&s);
    assert_int_equal(s.got_len, 0);
}

static void an_address_that_is_none_is_named(void **state)
{
    static const char *const bad[] = {
        "",
        "127.0.0.1:1",
        "https://127.0.0.1:1",
        "http://127.0.0.1",
        "http://127.0.0.1:",
        "http://127.0.0.1:0",
        "http://127.0.0.1:65536",
        "http://127.0.0.1:1/x",
        "http://name.example:1",
        "http://[::1:1",
        "http://[]:1",
        "http://:1",
        "http://1111111111111111111111111111111111111111111111111111111111111111111:1",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct nk_client_target target = {.url = bad[i], .timeout_ms = 20000};
        struct nk_client *c = NULL;
        struct nk_err err;

        assert_int_equal(nk_client_new(&target, &c, &err), -1);
        assert_int_equal(err.code, NK_BAD_REQUEST);
    }
}

static void a_missing_socket_is_not_found(void **state)
{
    const struct nk_client_target target = {.socket = "/does/not/exist"};
    struct nk_client *c = NULL;
    struct nk_err err;

    (void)state;
    assert_int_equal(nk_client_new(&target, &c, &err), -1);
    assert_int_equal(err.sys, ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_arrives_whole_in_pieces_of_any_size),
        cmocka_unit_test(a_connection_that_breaks_off_is_an_error_at_every_byte),
        cmocka_unit_test(the_request_is_as_asked_with_its_token),
        cmocka_unit_test(a_streamed_body_goes_out_in_chunks),
        cmocka_unit_test(a_refusal_before_the_body_is_sent_is_read),
        cmocka_unit_test(a_silent_server_is_given_up),
        cmocka_unit_test(bytes_that_came_with_the_head_are_pending),
        cmocka_unit_test(a_request_that_would_be_two_is_not_sent),
        cmocka_unit_test(an_address_that_is_none_is_named),
        cmocka_unit_test(a_missing_socket_is_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
