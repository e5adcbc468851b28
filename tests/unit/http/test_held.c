/* A gate that judges later: what waits for it, and what comes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "toy.h"

#define HOST " HTTP/1.1\r\nHost: x\r\n"
#define GET(path) "GET " path HOST "\r\n"
#define LATE "X-Late: 1\r\n"

static int late_gate(struct nk_req *req, struct nk_err *err)
{
    struct toy *t = nk_req_app(req);

    (void)err;
    if (!nk_req_header(req, "x-late"))
        return 0;
    t->held = req;
    return NK_GATE_LATER;
}

static void start(struct toy *t)
{
    toy_init(t);
    t->cfg.hooks.gate = late_gate;
    toy_open(t);
    toy_connect(t);
}

static struct nk_req *wait_held(struct toy *t)
{
    struct nk_req *req;

    toy_begin_wait(t);
    while (!t->held && !t->late)
        toy_turn(t);
    toy_end_wait(t);
    req = t->held;
    assert_non_null(req);
    t->held = NULL;
    return req;
}

static void a_request_goes_on_once_it_is_admitted(void **state)
{
    struct toy t;
    struct nk_req *req;

    (void)state;
    start(&t);
    toy_say(&t, "GET /hello" HOST LATE "\r\n" GET("/hello"));
    req = wait_held(&t);
    toy_turn(&t);
    assert_int_equal(t.handled, 0);
    nk_req_admit(req, NULL);
    toy_wait(&t, &t.handled, 2);
    toy_stop(&t);
}

static void a_body_waits_and_is_then_read(void **state)
{
    static const char *const bodies[] = {
        "POST /echo" HOST LATE "Content-Length: 14\r\n\r\n{\"text\":\"abc\"}",
        "POST /echo" HOST LATE
        "Transfer-Encoding: chunked\r\n\r\ne\r\n{\"text\":\"abc\"}\r\n0\r\n\r\n",
    };
    struct toy t;

    (void)state;
    for (size_t i = 0; i < NK_COUNT(bodies); i++) {
        struct nk_req *req;

        start(&t);
        toy_say(&t, bodies[i]);
        req = wait_held(&t);
        toy_turn(&t);
        assert_int_equal(t.handled, 0);
        nk_req_admit(req, NULL);
        toy_expect(&t, "\r\n\r\nabc");
        toy_stop(&t);
    }
}

static void an_empty_body_is_no_body_that_is_still_to_come(void **state)
{
    struct toy t;
    struct nk_req *req;

    (void)state;
    start(&t);
    toy_say(&t, "POST /opt" HOST LATE "Content-Length: 0\r\n\r\n");
    req = wait_held(&t);
    toy_turn(&t);
    nk_req_admit(req, NULL);
    toy_wait(&t, &t.handled, 1);
    toy_stop(&t);
}

static void leave_to_send_is_given_when_it_is_admitted(void **state)
{
    struct toy t;
    struct nk_req *req;

    (void)state;
    start(&t);
    toy_say(&t, "POST /echo" HOST LATE "Expect: 100-continue\r\nContent-Length: 14\r\n\r\n");
    req = wait_held(&t);
    toy_read(&t);
    assert_null(toy_find(&t, "100 Continue"));
    nk_req_admit(req, NULL);
    toy_expect(&t, "HTTP/1.1 100 Continue\r\n\r\n");
    toy_say(&t, "{\"text\":\"abc\"}");
    toy_expect(&t, "\r\n\r\nabc");
    toy_stop(&t);
}

static void what_is_refused_late_is_answered_and_not_handled(void **state)
{
    struct nk_err err;
    struct toy t;
    struct nk_req *req;

    (void)state;
    start(&t);
    toy_say(&t, "POST /echo" HOST LATE "Content-Length: 14\r\n\r\n{\"text\":\"abc\"}");
    req = wait_held(&t);
    (void)nk_fail(&err, NK_OVERLOADED, "no");
    nk_req_admit(req, &err);
    toy_expect(&t, "HTTP/1.1 503");
    assert_int_equal(t.handled, 0);
    toy_stop(&t);
}

static void note_gone(struct nk_req *req, void *ctx, bool gone)
{
    struct toy *t = ctx;

    (void)req;
    t->gone += gone;
}

static void a_client_that_leaves_meanwhile_is_told_of(void **state)
{
    struct toy t;
    struct nk_req *req;

    (void)state;
    start(&t);
    toy_say(&t, "GET /hello" HOST LATE "\r\n");
    req = wait_held(&t);
    nk_req_on_close(req, note_gone, &t);
    toy_drop(&t);
    toy_wait(&t, &t.gone, 1);
    assert_int_equal(t.handled, 0);
    toy_stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_goes_on_once_it_is_admitted),
        cmocka_unit_test(a_body_waits_and_is_then_read),
        cmocka_unit_test(an_empty_body_is_no_body_that_is_still_to_come),
        cmocka_unit_test(leave_to_send_is_given_when_it_is_admitted),
        cmocka_unit_test(what_is_refused_late_is_answered_and_not_handled),
        cmocka_unit_test(a_client_that_leaves_meanwhile_is_told_of),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
