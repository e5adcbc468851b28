#include "toy.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

static void a_request_gets_its_answer(void **state)
{
    struct toy t;

    (void)state;
    toy_start(&t);
    toy_say(&t, GET("/hello"));
    toy_expect(&t, "\r\n\r\nhello");
    assert_non_null(toy_find(&t, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(toy_find(&t, "Content-Length: 5\r\n"));
    assert_non_null(toy_find(&t, "X-Nook-Instance: toy\r\n"));
    assert_non_null(toy_find(&t, "X-Request-Id: "));
    assert_null(toy_find(&t, "Connection:"));
    assert_int_equal(t.closed, 1);
    assert_int_equal(t.gone, 0);
    toy_stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_gets_its_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
