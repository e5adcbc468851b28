/*
 * Every allocation of each kind of request fails once: the client gets 503 or the end of the
 * connection, the next one is served, and nothing is left behind (the sanitizer counts).
 *
 * The linker sends the allocations of our own objects here (--wrap).
 */
#include "toy.h"

#include <string.h>
#include <sys/socket.h>

#define HOST " HTTP/1.1\r\nHost: x\r\n"

/* Jobs allocate on their own threads. */
static _Atomic unsigned long countdown; /* 0: none fails */
static _Atomic unsigned long seen;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t n);

static bool fails(void)
{
    seen++;
    return countdown > 0 && --countdown == 0;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t n)
{
    return fails() ? NULL : __real_realloc(old, n);
}

/* The client's own buffer is fixed, so that only the server allocates. */
static size_t hear(struct toy *t, char *out, size_t size, bool *out_over)
{
    size_t len = 0;
    ssize_t n = 1;

    *out_over = false;
    toy_begin_wait(t);
    while (!t->late && !*out_over && len < size - 1 && !strstr(out, "\r\n\r\n")) {
        uv_run(&t->loop, UV_RUN_NOWAIT);
        n = recv(t->fd, out + len, size - 1 - len, MSG_DONTWAIT);
        *out_over = n == 0;
        len += n > 0 ? (size_t)n : 0;
        out[len] = '\0';
    }
    toy_end_wait(t);
    assert_false(t->late);
    return len;
}

/* One request while the `nth` allocation fails; false: it was made without reaching that many. */
static bool survive(const char *request, unsigned long nth)
{
    struct toy t;
    char reply[4096] = "";
    bool over = false;
    unsigned long before;

    toy_start(&t);
    before = seen;
    countdown = nth;
    toy_say(&t, request);
    (void)hear(&t, reply, sizeof reply, &over);
    countdown = 0;
    bool reached = seen - before >= nth;

    if (reply[0])
        assert_true(strstr(reply, "HTTP/1.1 503") || strstr(reply, "HTTP/1.1 200") ||
                    strstr(reply, "HTTP/1.1 101"));
    toy_drop(&t);
    toy_connect(&t);
    toy_say(&t, "GET /hello" HOST "\r\n");
    toy_expect(&t, "hello");
    toy_stop(&t);
    return reached;
}

static void check(const char *request)
{
    unsigned long nth = 1;

    while (survive(request, nth))
        nth++;
    assert_true(nth > 3);
}

static void a_plain_request_survives(void **state)
{
    (void)state;
    check("GET /hello" HOST "X-Request-Id: abc\r\n\r\n");
}

static void a_request_with_parameters_survives(void **state)
{
    (void)state;
    check("GET /names/a%20b?tail=c" HOST "\r\n");
}

static void a_json_body_survives(void **state)
{
    (void)state;
    check("POST /echo" HOST "Content-Length: 14\r\n\r\n{\"text\":\"abc\"}");
}

static void a_chunked_upload_survives(void **state)
{
    (void)state;
    check("PUT /upload" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
}

static void a_stream_survives(void **state)
{
    (void)state;
    check("GET /stream?size=100" HOST "\r\n");
}

static void a_file_survives(void **state)
{
    (void)state;
    check("GET /file?size=100" HOST "\r\n");
    check("GET /file?size=1000000" HOST "\r\n");
}

static void an_upgrade_survives(void **state)
{
    (void)state;
    check("GET /ws" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n"
          "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
}

static void pipelined_requests_survive(void **state)
{
    (void)state;
    check("GET /hello" HOST "\r\nGET /later" HOST "\r\nGET /hello" HOST "\r\n");
}

static void a_bad_request_survives(void **state)
{
    struct toy t;

    (void)state;
    for (unsigned long nth = 1; nth < 12; nth++) {
        toy_start(&t);
        countdown = nth;
        toy_say(&t, "nonsense\r\n\r\n");
        countdown = 0;
        toy_expect_end(&t);
        toy_stop(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_request_survives),
        cmocka_unit_test(a_request_with_parameters_survives),
        cmocka_unit_test(a_json_body_survives),
        cmocka_unit_test(a_chunked_upload_survives),
        cmocka_unit_test(a_stream_survives),
        cmocka_unit_test(a_file_survives),
        cmocka_unit_test(an_upgrade_survives),
        cmocka_unit_test(pipelined_requests_survive),
        cmocka_unit_test(a_bad_request_survives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
