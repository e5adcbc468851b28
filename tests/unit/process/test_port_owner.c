#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "process/port_owner.h"

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

/* A listening socket on `text`, made by `uid`; *port 0: any. -1: that cannot be had here. */
static int listen_as(uid_t uid, const char *text, uint16_t *port, bool only6)
{
    union address a = {0};
    socklen_t len = sizeof a;
    int family = strchr(text, ':') ? AF_INET6 : AF_INET, on = 1, off = only6 ? 1 : 0, fd;

    if (uid != geteuid() && seteuid(uid) < 0)
        return -1;
    fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (geteuid() != getuid())
        assert_int_equal(seteuid(getuid()), 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    a.any.sa_family = (sa_family_t)family;
    a.in.sin_port = htons(*port);
    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    (void)inet_pton(family, text,
                    family == AF_INET6 ? (void *)&a.in6.sin6_addr : (void *)&a.in.sin_addr);
    if (bind(fd, &a.any, family == AF_INET6 ? sizeof a.in6 : sizeof a.in) < 0 ||
        listen(fd, 1) < 0 || getsockname(fd, &a.any, &len) < 0) {
        (void)close(fd);
        return -1;
    }
    *port = ntohs(a.in.sin_port);
    return fd;
}

static bool has_diag(void)
{
    uid_t uid;

    return nk_port_owner_find(true, AF_INET, 1, &uid) == -ENOENT;
}

static int find(bool diag, int family, uint16_t port)
{
    uid_t uid = (uid_t)-1;
    int rc = nk_port_owner_find(diag, family, port, &uid);

    return rc < 0 ? rc : (int)uid;
}

static void expect(int family, uint16_t port, int owner)
{
    assert_int_equal(find(false, family, port), owner);
    if (has_diag())
        assert_int_equal(find(true, family, port), owner);
}

static void a_listener_is_found_on_its_own_address_alone(void **state)
{
    uint16_t port = 0;
    int fd = listen_as(geteuid(), "127.0.0.1", &port, false);

    (void)state;
    assert_true(fd >= 0);
    expect(AF_INET, port, (int)geteuid());
    expect(AF_INET6, port, -ENOENT);
    (void)close(fd);
    expect(AF_INET, port, -ENOENT);
}

static void a_listener_on_any_address_is_found_on_loopback(void **state)
{
    uint16_t port = 0, both = 0;
    int fd = listen_as(geteuid(), "0.0.0.0", &port, false);
    int six = listen_as(geteuid(), "::", &both, false);

    (void)state;
    expect(AF_INET, port, (int)geteuid());
    (void)close(fd);
    if (six < 0)
        return;
    expect(AF_INET, both, (int)geteuid());
    expect(AF_INET6, both, (int)geteuid());
    (void)close(six);
}

static void of_two_users_it_is_the_one_that_a_connection_would_come_to(void **state)
{
    uint16_t port = 0;
    int four = listen_as(getuid() == 0 ? 12345 : (uid_t)-1, "127.0.0.1", &port, false);
    int six;

    (void)state;
    if (four < 0)
        skip(); /* only root has two users */
    six = listen_as(geteuid(), "::1", &port, true);
    expect(AF_INET, port, 12345);
    if (six >= 0)
        expect(AF_INET6, port, (int)geteuid());
    (void)close(six);
    (void)close(four);
}

static void a_connection_is_no_listener(void **state)
{
    uint16_t port = 0;
    int fd = listen_as(geteuid(), "127.0.0.1", &port, false);
    union address a = {.in = {.sin_family = AF_INET, .sin_port = htons(port)}};
    socklen_t len = sizeof a;
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    a.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(client, &a.any, sizeof a.in), 0);
    assert_int_equal(getsockname(client, &a.any, &len), 0);
    expect(AF_INET, ntohs(a.in.sin_port), -ENOENT);
    (void)close(client);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listener_is_found_on_its_own_address_alone),
        cmocka_unit_test(a_listener_on_any_address_is_found_on_loopback),
        cmocka_unit_test(of_two_users_it_is_the_one_that_a_connection_would_come_to),
        cmocka_unit_test(a_connection_is_no_listener),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
