#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http/response.h"

struct answer {
    int status;
    bool done; /* complete before the connection's end */
    bool ended;
    struct nk_buf body;
    char header[64]; /* X-Test */
    char why[256];   /* what was wrong with its end */
};

/* 0 or -1, the answer fed `step` bytes at a time and then ended. */
static int feed(const char *text, size_t len, size_t step, bool to_head, struct answer *out)
{
    struct nk_response r = {.to_head = to_head};
    struct nk_buf in = {0};
    struct nk_err err;
    bool head = false;
    int rc = 0;

    *out = (struct answer){0};
    for (size_t at = 0; at < len && rc == 0; at += step) {
        nk_buf_add(&in, text + at, at + step < len ? step : len - at);
        if (!head)
            rc = nk_response_read_head(&r, &in, &head, &err);
        if (rc == 0 && head)
            rc = nk_response_read_body(&r, &in, &out->body, &err);
    }
    out->status = r.status;
    out->done = r.done;
    if (rc == 0 && nk_response_header(&r, "x-TEST"))
        (void)strncat(out->header, nk_response_header(&r, "x-TEST"), sizeof out->header - 1);
    if (rc == 0)
        rc = nk_response_end(&r, &err);
    if (rc < 0)
        (void)strncat(out->why, err.msg, sizeof out->why - 1);
    out->ended = rc == 0;
    nk_buf_fini(&in);
    nk_response_fini(&r);
    return rc;
}

static void expect(const char *text, int status, const char *body)
{
    size_t len = strlen(text);

    for (size_t step = 1; step <= len; step++) {
        struct answer a;

        assert_int_equal(feed(text, len, step, false, &a), 0);
        assert_int_equal(a.status, status);
        assert_int_equal(nk_buf_left(&a.body), strlen(body));
        if (*body != '\0')
            assert_memory_equal(nk_buf_front(&a.body), body, strlen(body));
        nk_buf_fini(&a.body);
    }
}

static void a_body_of_known_length_is_read_however_it_is_cut(void **state)
{
    (void)state;
    expect("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Test: a\r\n\r\nhello", 200, "hello");
    expect("HTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n", 404, "");
    expect("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok and bytes behind it", 200, "ok");
}

static void chunks_are_joined_however_they_are_cut(void **state)
{
    (void)state;
    expect("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
           "5\r\nhello\r\nA;ext=\"1\"\r\n, chunked!\r\n0\r\nTrailer: x\r\n\r\n",
           200, "hello, chunked!");
    expect("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", 200, "");
}

static void without_a_length_the_body_lasts_until_the_end(void **state)
{
    (void)state;
    expect("HTTP/1.0 200 OK\r\n\r\nall of it", 200, "all of it");
}

static void some_answers_have_no_body_whatever_they_say(void **state)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    struct answer a;

    (void)state;
    expect("HTTP/1.1 204 No Content\r\n\r\n", 204, "");
    expect("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, "");
    assert_int_equal(feed(head, sizeof head - 1, 1, true, &a), 0);
    assert_true(a.done);
}

static void interim_answers_are_passed_over_but_not_a_switch(void **state)
{
    (void)state;
    expect("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n"
           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
           200, "x");
    expect("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 101, "");
}

static void a_header_is_found_in_any_letter_case_and_without_its_space(void **state)
{
    static const char text[] = "HTTP/1.1 204 x\r\nA: b\r\nX-Test:  \t v w \t\r\n\r\n";
    struct answer a;

    (void)state;
    assert_int_equal(feed(text, sizeof text - 1, sizeof text, false, &a), 0);
    assert_string_equal(a.header, "v w");
}

static void every_cut_of_a_complete_answer_is_told_as_broken(void **state)
{
    static const char *const whole[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        for (size_t len = 0; len < strlen(whole[i]); len++) {
            struct answer a;

            assert_int_equal(feed(whole[i], len, 7, false, &a), -1);
            nk_buf_fini(&a.body);
        }
    }
}

static void what_is_not_http_is_refused(void **state)
{
    static const char *const bad[] = {
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: no name\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\nB: c\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: \x1b[2J\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 600 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct answer a;

        assert_int_equal(feed(bad[i], strlen(bad[i]), 1, false, &a), -1);
        nk_buf_fini(&a.body);
        assert_int_equal(feed(bad[i], strlen(bad[i]), 1000, false, &a), -1);
        nk_buf_fini(&a.body);
    }
}

#define CHUNKS "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"

static void what_broke_off_says_why_where_the_server_did(void **state)
{
    static const char early[] = "the connection ended in the middle of the answer";
    static const char *const cases[][2] = {
        {CHUNKS "1;broken=\"d/s\\\"e\\\\c\xc3\xa9t: no\"\r\n",
         "broken off: d/s\"e\\c\xc3\xa9t: no"},
        {CHUNKS "1;broken=\"no end\r\n", "broken off: no end"},
        {CHUNKS "1;broken=\"half", early},
        {CHUNKS "1;other=\"x\"\r\n", early},
        {CHUNKS "1;broken=\"old\"\r\nx\r\n5\r\nx", early},
        {CHUNKS "0;broken=\"x\"\r\n", early},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t step = 1; step <= strlen(cases[i][0]); step++) {
            struct answer a;

            assert_int_equal(feed(cases[i][0], strlen(cases[i][0]), step, false, &a), -1);
            assert_string_equal(a.why, cases[i][1]);
            nk_buf_fini(&a.body);
        }
    }
}

static void heads_and_framing_without_end_are_refused(void **state)
{
    static const struct {
        const char *start, *again;
    } endless[] = {
        {"HTTP/1.1 200 ", "OK"},
        {"HTTP/1.1 200 OK\r\n", "A: b\r\n"},
        {"", "HTTP/1.1 100 Continue\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "0"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "a=b;"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        struct nk_response r = {0};
        struct nk_buf in = {0}, out = {0};
        struct nk_err err;
        bool head = false;
        int rc = 0, rounds = 0;

        nk_buf_add_str(&in, endless[i].start);
        for (; rc == 0 && rounds < 100000; rounds++) {
            nk_buf_add_str(&in, endless[i].again);
            rc = head ? 0 : nk_response_read_head(&r, &in, &head, &err);
            if (rc == 0 && head)
                rc = nk_response_read_body(&r, &in, &out, &err);
        }
        assert_int_equal(rc, -1);
        nk_buf_fini(&in);
        nk_buf_fini(&out);
        nk_response_fini(&r);
    }
}

static void interim_answers_come_one_by_one_where_they_are_wanted(void **state)
{
    struct nk_response r = {.with_interim = true};
    struct nk_buf in = {0};
    bool done = false;

    (void)state;
    nk_buf_add_str(&in,
                   "HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n");
    assert_int_equal(nk_response_read_head(&r, &in, &done, NULL), 0);
    assert_true(done);
    assert_int_equal(r.status, 103);
    assert_string_equal(nk_response_header(&r, "a"), "b");
    assert_int_equal(nk_response_read_head(&r, &in, &done, NULL), 0);
    assert_false(done);
    assert_int_equal(r.status, 0);
    nk_buf_add_str(&in, "\r\n");
    assert_int_equal(nk_response_read_head(&r, &in, &done, NULL), 0);
    assert_true(done);
    assert_int_equal(r.status, 200);
    assert_int_equal(r.length, 2);
    assert_null(nk_response_header(&r, "a"));
    assert_int_equal(nk_response_direct(&r), 2);
    nk_response_took(&r, 1);
    assert_int_equal(nk_response_direct(&r), 1);
    nk_response_took(&r, 1);
    assert_true(r.done);
    assert_int_equal(nk_response_direct(&r), 0);
    nk_buf_fini(&in);
    nk_response_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_of_known_length_is_read_however_it_is_cut),
        cmocka_unit_test(chunks_are_joined_however_they_are_cut),
        cmocka_unit_test(without_a_length_the_body_lasts_until_the_end),
        cmocka_unit_test(some_answers_have_no_body_whatever_they_say),
        cmocka_unit_test(interim_answers_are_passed_over_but_not_a_switch),
        cmocka_unit_test(a_header_is_found_in_any_letter_case_and_without_its_space),
        cmocka_unit_test(every_cut_of_a_complete_answer_is_told_as_broken),
        cmocka_unit_test(what_is_not_http_is_refused),
        cmocka_unit_test(what_broke_off_says_why_where_the_server_did),
        cmocka_unit_test(heads_and_framing_without_end_are_refused),
        cmocka_unit_test(interim_answers_come_one_by_one_where_they_are_wanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
