#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "process/sockdiag.h"

#define ENTRIES 1024

/* A socket bound to a port of loopback; *out_port is which. */
static int bound(int family, uint16_t *out_port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    bool is_six = family == AF_INET6;
    struct sockaddr *at = is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    socklen_t len = is_six ? sizeof six : sizeof four;
    nk_auto_fd int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, at, len) < 0 || getsockname(fd, at, &len) < 0)
        return -1;
    *out_port = ntohs(is_six ? six.sin6_port : four.sin_port);
    return nk_take_fd(&fd);
}

static bool is_told(int fd, uint16_t port, uid_t uid)
{
    static struct nk_sockdiag_entry list[ENTRIES];
    int count = nk_sockdiag_listening(uid, list, ENTRIES);
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    for (int i = 0; i < count; i++) {
        if (list[i].inode == st.st_ino && list[i].port == port)
            return true;
    }
    return false;
}

static void tells_of(int family)
{
    uint16_t port;
    nk_auto_fd int fd = bound(family, &port);

    if (fd < 0 || nk_sockdiag_listening(0, NULL, 0) < 0)
        skip();
    assert_false(is_told(fd, port, geteuid()));
    assert_int_equal(listen(fd, 1), 0);
    assert_true(is_told(fd, port, geteuid()));
    assert_false(is_told(fd, port, geteuid() + 1));
}

static void a_listening_socket_is_told_to_whom_it_belongs(void **state)
{
    (void)state;
    tells_of(AF_INET);
}

static void of_the_newer_family_too(void **state)
{
    (void)state;
    tells_of(AF_INET6);
}

static void more_than_there_is_room_for_are_left_out(void **state)
{
    struct nk_sockdiag_entry one[1];
    uint16_t port;
    nk_auto_fd int a = bound(AF_INET, &port), b = bound(AF_INET, &port);

    (void)state;
    if (nk_sockdiag_listening(0, NULL, 0) < 0)
        skip();
    assert_int_equal(listen(a, 1), 0);
    assert_int_equal(listen(b, 1), 0);
    assert_int_equal(nk_sockdiag_listening(geteuid(), one, 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listening_socket_is_told_to_whom_it_belongs),
        cmocka_unit_test(of_the_newer_family_too),
        cmocka_unit_test(more_than_there_is_room_for_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
