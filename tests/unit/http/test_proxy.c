#include "toy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/proxy.h"

#define GET "GET /p/x?y HTTP/1.1\r\nHost: x\r\n\r\n"
#define SHORT_MS 60

/* The server behind, in the same thread: what it does is done by each test. */
struct behind {
    int fd; /* listening */
    struct nk_proxy_config cfg;
};

static struct behind behind;

static int handler(struct nk_req *req, struct nk_err *err)
{
    struct nk_proxy_config cfg = behind.cfg;

    cfg.loop = req->conn->server->loop;
    cfg.jobs = req->conn->server->cfg.jobs;
    cfg.target = req->head->path + 2;
    return nk_proxy_open(req, &cfg, err);
}

static const struct nk_route routes[] = {
    {"ANY", "/p/{rest...}", "p", handler, .body = NK_BODY_STREAM, .opaque = 1},
};

static void start(struct toy *t, int backlog)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof a;

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    behind.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(behind.fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(behind.fd, backlog), 0);
    assert_int_equal(getsockname(behind.fd, (struct sockaddr *)&a, &len), 0);
    behind.cfg = (struct nk_proxy_config){.port = ntohs(a.sin_port)};
    toy_init(t);
    t->cfg.limits.upload_max = 0;
    t->cfg.routes = routes;
    t->cfg.route_count = 1;
    toy_open(t);
    toy_connect(t);
}

static void stop(struct toy *t)
{
    if (behind.fd >= 0)
        (void)close(behind.fd);
    toy_stop(t);
}

/* The connection that came to the server, non-blocking. */
static int take(struct toy *t)
{
    int fd = -1;

    toy_begin_wait(t);
    while (fd < 0 && !t->late) {
        (void)uv_run(&t->loop, UV_RUN_ONCE);
        fd = accept4(behind.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    }
    toy_end_wait(t);
    assert_true(fd >= 0);
    return fd;
}

/* What has come to the server, once `text` is in it. */
static void expect_request(struct toy *t, int fd, const char *text, char *got, size_t room)
{
    size_t len = 0;

    got[0] = '\0';
    toy_begin_wait(t);
    while (!strstr(got, text) && !t->late) {
        ssize_t n = recv(fd, got + len, room - len - 1, 0);

        if (n > 0)
            len += (size_t)n;
        got[len] = '\0';
        if (n <= 0)
            (void)uv_run(&t->loop, UV_RUN_ONCE);
    }
    toy_end_wait(t);
    assert_non_null(strstr(got, text));
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void an_answer_comes_back_with_one_framing(void **state)
{
    struct toy t;
    char got[4096];
    int fd;

    (void)state;
    start(&t, 4);
    toy_say(&t, GET);
    fd = take(&t);
    expect_request(&t, fd, "\r\n\r\n", got, sizeof got);
    assert_non_null(strstr(got, "GET /x?y HTTP/1.1\r\nHost: localhost:"));
    say(fd, "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n");
    toy_expect(&t, "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n");
    say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhel");
    toy_expect(&t, "\r\n\r\nhel");
    say(fd, "loMORE");
    toy_expect(&t, "\r\n\r\nhello");
    assert_non_null(toy_find(&t, "X-A: b\r\n"));
    assert_null(toy_find(&t, "MORE"));
    assert_int_equal(toy_count(&t, "Content-Length"), 1);
    (void)close(fd);
    stop(&t);
}

static void a_server_that_is_silent_is_504(void **state)
{
    struct toy t;
    int fd;

    (void)state;
    start(&t, 4);
    behind.cfg.answer_ms = SHORT_MS;
    toy_say(&t, GET);
    toy_expect(&t, "HTTP/1.1 504 ");
    fd = take(&t);
    (void)close(fd);
    stop(&t);
}

static void half_a_head_is_no_answer_in_time_either(void **state)
{
    struct toy t;
    int fd;

    (void)state;
    start(&t, 4);
    behind.cfg.answer_ms = SHORT_MS;
    toy_say(&t, GET);
    fd = take(&t);
    say(fd, "HTTP/1.1 200 OK\r\nX-A: ");
    toy_expect(&t, "HTTP/1.1 504 ");
    assert_null(toy_find(&t, "X-A"));
    (void)close(fd);
    stop(&t);
}

static void a_body_that_the_server_does_not_take_is_504(void **state)
{
    static char body[1 << 16];
    struct toy t;

    (void)state;
    start(&t, 4);
    behind.cfg.answer_ms = SHORT_MS;
    toy_say(&t, "PUT /p/x HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n");
    toy_begin_wait(&t);
    while (!toy_find(&t, "HTTP/1.1 504 ") && !t.late) {
        (void)send(t.fd, body, sizeof body, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)uv_run(&t.loop, UV_RUN_ONCE);
        toy_read(&t);
    }
    toy_end_wait(&t);
    assert_non_null(toy_find(&t, "HTTP/1.1 504 "));
    stop(&t);
}

/* Connections fill the queue of a server that takes none, until one has to wait. */
static void a_server_that_takes_no_connection_is_504(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    int waiting[8];
    struct toy t;

    (void)state;
    start(&t, 0);
    behind.cfg.connect_ms = SHORT_MS;
    a.sin_port = htons(behind.cfg.port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 8; i++) {
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(waiting[i], (struct sockaddr *)&a, sizeof a);
    }
    toy_say(&t, GET);
    toy_expect(&t, "HTTP/1.1 504 ");
    for (int i = 0; i < 8; i++)
        (void)close(waiting[i]);
    stop(&t);
}

static void nobody_there_is_502(void **state)
{
    struct toy t;

    (void)state;
    start(&t, 4);
    (void)close(behind.fd);
    behind.fd = -1;
    toy_say(&t, GET);
    toy_expect(&t, "HTTP/1.1 502 ");
    stop(&t);
}

static bool never(const void *who, int family, uint16_t port)
{
    (void)who;
    (void)family;
    (void)port;
    return false;
}

static bool once(const void *who, int family, uint16_t port)
{
    unsigned *left = (unsigned *)(uintptr_t)who;

    (void)family;
    (void)port;
    return (*left)-- > 0;
}

static void who_may_not_does_not_connect(void **state)
{
    struct toy t;

    (void)state;
    start(&t, 4);
    behind.cfg.may = never;
    toy_say(&t, GET);
    toy_expect(&t, "HTTP/1.1 502 ");
    assert_int_equal(accept4(behind.fd, NULL, NULL, SOCK_CLOEXEC), -1);
    stop(&t);
}

static void one_who_may_no_more_when_connected_sends_nothing(void **state)
{
    unsigned left = 1;
    char byte;
    struct toy t;
    int fd;

    (void)state;
    start(&t, 4);
    behind.cfg.may = once;
    behind.cfg.who = &left;
    toy_say(&t, GET);
    toy_expect(&t, "HTTP/1.1 502 ");
    fd = take(&t);
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    (void)close(fd);
    stop(&t);
}

/* Between all steps: asking, connecting, waiting, answering. */
static void a_client_may_leave_at_any_moment(void **state)
{
    struct toy t;

    (void)state;
    start(&t, 64);
    for (unsigned turns = 0; turns < 12; turns++) {
        toy_connect(&t);
        toy_say(&t, GET);
        for (unsigned i = 0; i < turns; i++)
            (void)uv_run(&t.loop, UV_RUN_NOWAIT);
        toy_drop(&t);
    }
    toy_turn(&t);
    stop(&t);
}

static void a_server_that_resets_in_the_middle_cuts_the_answer(void **state)
{
    const struct linger hard = {.l_onoff = 1};
    struct toy t;
    int fd;

    (void)state;
    start(&t, 4);
    toy_say(&t, GET);
    fd = take(&t);
    say(fd, "HTTP/1.1 200 OK\r\n\r\nsome");
    toy_expect(&t, "some\r\n");
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    (void)close(fd);
    toy_expect_end(&t);
    assert_null(toy_find(&t, "\r\n0\r\n"));
    stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_comes_back_with_one_framing),
        cmocka_unit_test(a_server_that_is_silent_is_504),
        cmocka_unit_test(half_a_head_is_no_answer_in_time_either),
        cmocka_unit_test(a_body_that_the_server_does_not_take_is_504),
        cmocka_unit_test(a_server_that_takes_no_connection_is_504),
        cmocka_unit_test(nobody_there_is_502),
        cmocka_unit_test(who_may_not_does_not_connect),
        cmocka_unit_test(one_who_may_no_more_when_connected_sends_nothing),
        cmocka_unit_test(a_client_may_leave_at_any_moment),
        cmocka_unit_test(a_server_that_resets_in_the_middle_cuts_the_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
