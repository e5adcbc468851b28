#include "toy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define HOST " HTTP/1.1\r\nHost: x\r\n"
#define GET(path) "GET " path HOST "\r\n"

struct folder {
    char path[64];
    char socket[80];
};

static void folder_make(struct folder *f)
{
    snprintf(f->path, sizeof f->path, "/tmp/nook-listener-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    snprintf(f->socket, sizeof f->socket, "%s/s", f->path);
}

static void folder_drop(struct folder *f)
{
    (void)unlink(f->socket);
    assert_int_equal(rmdir(f->path), 0);
}

static int connect_unix(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    memcpy(at.sun_path, path, strlen(path));
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static int connect_tcp(unsigned port)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    at.sin_port = htons((uint16_t)port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void start_tcp(struct toy *t, unsigned *out_port)
{
    toy_init(t);
    toy_open(t);
    assert_int_equal(nk_server_listen_tcp(t->server, "127.0.0.1:0", out_port, NULL), 0);
    assert_true(*out_port > 0);
    t->fd = connect_tcp(*out_port);
}

static void a_tcp_client_is_served(void **state)
{
    struct toy t;
    unsigned port = 0;

    (void)state;
    start_tcp(&t, &port);
    toy_say(&t, GET("/hello"));
    toy_expect(&t, "hello");
    toy_stop(&t);
}

static void an_ipv6_address_stands_in_brackets(void **state)
{
    struct toy t;
    unsigned port = 0;
    struct nk_err err = {0};

    (void)state;
    toy_init(&t);
    toy_open(&t);
    if (nk_server_listen_tcp(t.server, "[::1]:0", &port, &err) < 0) {
        toy_stop(&t);
        if (err.sys == EAFNOSUPPORT || err.sys == EADDRNOTAVAIL)
            skip(); /* a machine without IPv6 */
        fail_msg("%s", err.msg);
    }
    assert_true(port > 0);
    toy_stop(&t);
}

static void what_is_no_numeric_address_is_refused(void **state)
{
    static const char *const bad[] = {"localhost:80", "127.0.0.1",    "127.0.0.1:",   ":80",
                                      "127.0.0.1:x",  "127.0.0.1:1x", "[::1]",        "::1:80x",
                                      "[::1:80",      "1.2.3:80",     "127.0.0.1:-1", ""};
    struct toy t;

    (void)state;
    toy_init(&t);
    toy_open(&t);
    for (size_t i = 0; i < NK_COUNT(bad); i++) {
        struct nk_err err = {0};
        unsigned port = 0;

        assert_int_equal(nk_server_listen_tcp(t.server, bad[i], &port, &err), -1);
        assert_int_equal(err.code, NK_BAD_REQUEST);
    }
    toy_stop(&t);
}

static void a_port_in_use_is_an_error(void **state)
{
    struct toy t;
    unsigned port = 0;
    char addr[32];
    struct nk_err err = {0};

    (void)state;
    start_tcp(&t, &port);
    snprintf(addr, sizeof addr, "127.0.0.1:%u", port);
    assert_int_equal(nk_server_listen_tcp(t.server, addr, &port, &err), -1);
    assert_int_equal(err.sys, EADDRINUSE);
    toy_stop(&t);
}

static void a_reset_by_a_half_closed_tcp_client_ends_its_request(void **state)
{
    struct linger hard = {.l_onoff = 1};
    struct toy t;
    unsigned port = 0;

    (void)state;
    start_tcp(&t, &port);
    toy_say(&t, GET("/later"));
    toy_wait(&t, &t.handled, 1);
    assert_int_equal(shutdown(t.fd, SHUT_WR), 0);
    toy_wait(&t, &t.half, 1);
    toy_turn(&t);
    assert_int_equal(t.closed, 0);
    assert_int_equal(setsockopt(t.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
    toy_drop(&t);
    toy_wait(&t, &t.closed, 1);
    assert_int_equal(t.gone, 1);
    toy_stop(&t);
}

static void a_tcp_client_that_left_is_noticed_when_it_is_written_to(void **state)
{
    struct toy t;
    unsigned port = 0;

    (void)state;
    start_tcp(&t, &port);
    toy_say(&t, GET("/stream?size=100000000"));
    toy_expect(&t, "\r\n\r\n");
    toy_drop(&t);
    toy_wait(&t, &t.closed, 1);
    assert_int_equal(t.gone, 1);
    toy_stop(&t);
}

static void urgent_data_does_not_keep_the_loop_awake(void **state)
{
    struct toy t;
    unsigned port = 0;

    (void)state;
    start_tcp(&t, &port);
    toy_say(&t, GET("/later"));
    toy_wait(&t, &t.handled, 1);
    assert_int_equal(send(t.fd, "!", 1, MSG_OOB), 1);
    assert_int_equal(shutdown(t.fd, SHUT_WR), 0);
    toy_wait(&t, &t.half, 1);
    toy_turn(&t);
    /* The only thing left to wake the loop is the limit of the test itself. */
    toy_begin_wait(&t);
    assert_int_equal(uv_run(&t.loop, UV_RUN_NOWAIT), 1);
    assert_true(uv_backend_timeout(&t.loop) > TOY_WAIT_MS / 2);
    toy_end_wait(&t);
    nk_reply_bytes(t.held, 200, NULL, "fine", 4);
    toy_expect(&t, "fine");
    toy_stop(&t);
}

static void a_unix_client_is_served_and_the_socket_removed(void **state)
{
    struct folder f;
    struct toy t;
    struct stat st;

    (void)state;
    folder_make(&f);
    toy_init(&t);
    toy_open(&t);
    assert_int_equal(nk_server_listen_unix(t.server, f.socket, NULL), 0);
    t.fd = connect_unix(f.socket);
    toy_say(&t, GET("/hello"));
    toy_expect(&t, "hello");
    toy_stop(&t);
    assert_int_equal(stat(f.socket, &st), -1);
    folder_drop(&f);
}

static void the_folder_is_made_where_there_is_none(void **state)
{
    struct folder f;
    struct toy t;
    struct stat st;
    char inner[96];
    char path[100];

    (void)state;
    folder_make(&f);
    snprintf(inner, sizeof inner, "%s/inner", f.path);
    snprintf(path, sizeof path, "%s/s", inner);
    toy_init(&t);
    toy_open(&t);
    assert_int_equal(nk_server_listen_unix(t.server, path, NULL), 0);
    assert_int_equal(stat(inner, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    toy_stop(&t);
    assert_int_equal(rmdir(inner), 0);
    folder_drop(&f);
}

static void a_folder_that_others_can_enter_is_refused(void **state)
{
    struct folder f;
    struct toy t;
    struct nk_err err = {0};

    (void)state;
    folder_make(&f);
    assert_int_equal(chmod(f.path, 0750), 0);
    toy_init(&t);
    toy_open(&t);
    assert_int_equal(nk_server_listen_unix(t.server, f.socket, &err), -1);
    assert_int_equal(err.code, NK_FORBIDDEN);
    toy_stop(&t);
    folder_drop(&f);
}

static void a_stale_socket_is_replaced_and_a_live_one_is_not(void **state)
{
    struct folder f;
    struct toy t;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct nk_err err = {0};
    int old = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    folder_make(&f);
    memcpy(at.sun_path, f.socket, strlen(f.socket));
    assert_int_equal(bind(old, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(old, 1), 0);
    toy_init(&t);
    toy_open(&t);
    assert_int_equal(nk_server_listen_unix(t.server, f.socket, &err), -1);
    assert_int_equal(err.sys, EADDRINUSE);
    assert_int_equal(close(old), 0);
    assert_int_equal(nk_server_listen_unix(t.server, f.socket, NULL), 0);
    t.fd = connect_unix(f.socket);
    toy_say(&t, GET("/hello"));
    toy_expect(&t, "hello");
    toy_stop(&t);
    folder_drop(&f);
}

static void a_file_at_the_place_of_the_socket_is_kept(void **state)
{
    struct folder f;
    struct toy t;
    struct stat st;
    FILE *file;

    (void)state;
    folder_make(&f);
    file = fopen(f.socket, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    toy_init(&t);
    toy_open(&t);
    assert_int_equal(nk_server_listen_unix(t.server, f.socket, NULL), -1);
    assert_int_equal(stat(f.socket, &st), 0);
    toy_stop(&t);
    folder_drop(&f);
}

static void a_stalled_reader_holds_at_most_256_kib_with_the_kernels_share(void **state)
{
    struct folder f;
    struct toy t;

    (void)state;
    folder_make(&f);
    toy_init(&t);
    toy_open(&t);
    assert_int_equal(nk_server_listen_unix(t.server, f.socket, NULL), 0);
    t.fd = connect_unix(f.socket);
    toy_say(&t, GET("/stream?size=100000000"));
    toy_turn(&t);
    assert_true(t.source.pulled > 0);
    assert_true(t.source.pulled <= NK_REPLY_QUEUE);
    toy_stop(&t);
    folder_drop(&f);
}

static void wait_for_accepted(struct toy *t, uint64_t n)
{
    toy_begin_wait(t);
    while (nk_server_stats(t->server)->accepted < n && !t->late)
        uv_run(&t->loop, UV_RUN_ONCE);
    toy_end_wait(t);
    assert_int_equal(nk_server_stats(t->server)->accepted, n);
}

static void over_the_cap_only_health_is_answered_and_then_nobody_accepted(void **state)
{
    struct folder f;
    struct toy t;
    int kept[2];
    int extra[2];
    int waiting;

    (void)state;
    folder_make(&f);
    toy_init(&t);
    t.cfg.limits.conns_max = 2;
    t.cfg.limits.conns_reserved = 2;
    toy_open(&t);
    assert_int_equal(nk_server_listen_unix(t.server, f.socket, NULL), 0);
    kept[0] = connect_unix(f.socket);
    kept[1] = connect_unix(f.socket);
    wait_for_accepted(&t, 2);
    extra[0] = connect_unix(f.socket);
    extra[1] = connect_unix(f.socket);
    wait_for_accepted(&t, 4);
    assert_int_equal(nk_server_stats(t.server)->refused, 2);
    waiting = connect_unix(f.socket);
    toy_turn(&t);
    assert_int_equal(nk_server_stats(t.server)->accepted, 4);
    t.fd = extra[0];
    toy_say(&t, GET("/hello"));
    toy_expect_end(&t);
    assert_non_null(toy_find(&t, "HTTP/1.1 503"));
    toy_forget(&t);
    t.fd = extra[1];
    toy_say(&t, GET("/healthz"));
    toy_expect_end(&t);
    assert_non_null(toy_find(&t, "hello"));
    assert_non_null(toy_find(&t, "Connection: close\r\n"));
    toy_forget(&t);
    wait_for_accepted(&t, 5);
    t.fd = kept[0];
    toy_say(&t, GET("/hello"));
    toy_expect(&t, "hello");
    (void)close(kept[1]);
    (void)close(extra[0]);
    (void)close(extra[1]);
    (void)close(waiting);
    toy_stop(&t);
    folder_drop(&f);
}

static void out_of_descriptors_accepting_rests_and_goes_on(void **state)
{
    struct rlimit before;
    struct rlimit none;
    struct folder f;
    struct toy t;
    uint64_t turns = 0;

    (void)state;
    folder_make(&f);
    toy_init(&t);
    toy_open(&t);
    assert_int_equal(nk_server_listen_unix(t.server, f.socket, NULL), 0);
    t.fd = connect_unix(f.socket);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)t.fd + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    toy_begin_wait(&t);
    for (uint64_t until = uv_now(&t.loop) + 50; uv_now(&t.loop) < until; turns++)
        uv_run(&t.loop, UV_RUN_ONCE);
    toy_end_wait(&t);
    assert_true(turns < 10);
    assert_int_equal(nk_server_stats(t.server)->accepted, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    wait_for_accepted(&t, 1);
    toy_say(&t, GET("/hello"));
    toy_expect(&t, "hello");
    toy_stop(&t);
    folder_drop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tcp_client_is_served),
        cmocka_unit_test(an_ipv6_address_stands_in_brackets),
        cmocka_unit_test(what_is_no_numeric_address_is_refused),
        cmocka_unit_test(a_port_in_use_is_an_error),
        cmocka_unit_test(a_reset_by_a_half_closed_tcp_client_ends_its_request),
        cmocka_unit_test(a_tcp_client_that_left_is_noticed_when_it_is_written_to),
        cmocka_unit_test(urgent_data_does_not_keep_the_loop_awake),
        cmocka_unit_test(a_unix_client_is_served_and_the_socket_removed),
        cmocka_unit_test(the_folder_is_made_where_there_is_none),
        cmocka_unit_test(a_folder_that_others_can_enter_is_refused),
        cmocka_unit_test(a_stale_socket_is_replaced_and_a_live_one_is_not),
        cmocka_unit_test(a_file_at_the_place_of_the_socket_is_kept),
        cmocka_unit_test(a_stalled_reader_holds_at_most_256_kib_with_the_kernels_share),
        cmocka_unit_test(over_the_cap_only_health_is_answered_and_then_nobody_accepted),
        cmocka_unit_test(out_of_descriptors_accepting_rests_and_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
