#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/target.h"

static char token_path[] = "/tmp/nook-target-XXXXXX";

static void write_token(const void *text, size_t len)
{
    int fd;

    memcpy(token_path + sizeof token_path - 7, "XXXXXX", 6);
    fd = mkstemp(token_path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), (ssize_t)len);
    (void)close(fd);
}

static int init(struct nk_target *t, const char *socket, const char *url, const char *token_file,
                const char *option)
{
    struct nk_cli_env env = {.socket = socket, .url = url, .token_file = token_file};
    struct nk_err err;

    return nk_target_init(t, &env, option, &err);
}

static void without_a_word_it_is_the_usual_socket(void **state)
{
    struct nk_target t;

    (void)state;
    assert_int_equal(init(&t, NULL, NULL, NULL, NULL), 0);
    assert_string_equal(t.client.socket, NK_TARGET_SOCKET);
    assert_null(t.client.url);
    assert_null(t.client.token);
    nk_target_fini(&t);
}

static void an_empty_variable_is_as_none(void **state)
{
    struct nk_target t;

    (void)state;
    assert_int_equal(init(&t, "", "", "", NULL), 0);
    assert_string_equal(t.client.socket, NK_TARGET_SOCKET);
    nk_target_fini(&t);
}

static void the_option_wins_over_the_url_and_the_url_over_the_socket(void **state)
{
    struct nk_target t;

    (void)state;
    assert_int_equal(init(&t, "/a", "http://127.0.0.1:1", "/does/not/exist", "/b"), 0);
    assert_string_equal(t.client.socket, "/b");
    assert_null(t.client.url);
    nk_target_fini(&t);
    assert_int_equal(init(&t, "/a", "http://127.0.0.1:1", NULL, NULL), 0);
    assert_null(t.client.socket);
    assert_string_equal(t.client.url, "http://127.0.0.1:1");
    nk_target_fini(&t);
    assert_int_equal(init(&t, "/a", NULL, NULL, NULL), 0);
    assert_string_equal(t.client.socket, "/a");
    nk_target_fini(&t);
}

static void a_daemon_without_socket_is_said_to_need_an_address(void **state)
{
    struct nk_target t;

    (void)state;
    assert_int_equal(init(&t, "none", NULL, NULL, NULL), -1);
}

static void the_token_is_read_without_its_line_end(void **state)
{
    struct nk_target t;

    (void)state;
    write_token("s3cret\r\n", 8);
    assert_int_equal(init(&t, NULL, "http://127.0.0.1:1", token_path, NULL), 0);
    assert_string_equal(t.client.token, "s3cret");
    nk_target_fini(&t);
    assert_null(t.token);
    (void)unlink(token_path);
}

static void a_token_that_would_break_the_header_is_refused(void **state)
{
    static const char *const bad[] = {"", "\n", "a b", "a\nX: y", "a\xff"};
    struct nk_target t;
    char long_one[5000];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_token(bad[i], strlen(bad[i]));
        assert_int_equal(init(&t, NULL, "http://127.0.0.1:1", token_path, NULL), -1);
        (void)unlink(token_path);
    }
    write_token("a\0b", 3);
    assert_int_equal(init(&t, NULL, "http://127.0.0.1:1", token_path, NULL), -1);
    (void)unlink(token_path);
    memset(long_one, 'a', sizeof long_one);
    write_token(long_one, sizeof long_one);
    assert_int_equal(init(&t, NULL, "http://127.0.0.1:1", token_path, NULL), -1);
    (void)unlink(token_path);
}

static void a_missing_token_file_is_an_error(void **state)
{
    struct nk_target t;

    (void)state;
    assert_int_equal(init(&t, NULL, "http://127.0.0.1:1", "/does/not/exist", NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_word_it_is_the_usual_socket),
        cmocka_unit_test(an_empty_variable_is_as_none),
        cmocka_unit_test(the_option_wins_over_the_url_and_the_url_over_the_socket),
        cmocka_unit_test(a_daemon_without_socket_is_said_to_need_an_address),
        cmocka_unit_test(the_token_is_read_without_its_line_end),
        cmocka_unit_test(a_token_that_would_break_the_header_is_refused),
        cmocka_unit_test(a_missing_token_file_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
