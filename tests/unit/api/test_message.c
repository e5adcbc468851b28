#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/message.h"
#include "process/stdin.h"

static enum nk_code read_code(const char *text, struct nk_message *m)
{
    struct nk_err err = {0};
    int rc = nk_message_read(text, strlen(text), m, &err);

    assert_int_equal(rc, err.code == NK_OK ? 0 : -1);
    return err.code;
}

static void expect_input(const char *text, const void *bytes, size_t len, uint64_t offset)
{
    struct nk_message m;

    assert_int_equal(read_code(text, &m), NK_OK);
    assert_int_equal(m.type, NK_MESSAGE_STDIN);
    assert_int_equal(m.bytes.len, len);
    assert_memory_equal(m.bytes.data, bytes, len);
    assert_true(m.offset == offset);
    free(m.bytes.data);
}

static void input_is_text_or_base64(void **state)
{
    (void)state;
    expect_input("{\"type\":\"stdin\",\"text\":\"a\\n\"}", "a\n", 2, NK_STDIN_NEXT);
    expect_input("{\"type\":\"stdin\",\"base64\":\"/wA=\",\"offset\":7}", "\xff\0", 2, 7);
    expect_input("{\"type\":\"stdin\",\"text\":\"\"}", "", 0, NK_STDIN_NEXT);
}

static void a_nul_in_a_text_is_a_byte(void **state)
{
    (void)state;
    expect_input("{\"type\":\"stdin\",\"text\":\"\\u0000\"}", "\0", 1, NK_STDIN_NEXT);
    expect_input("{\"type\":\"stdin\",\"text\":\"a\\u0000b\\\\u0000\\u0000\",\"offset\":0}",
                 "a\0b\\u0000\0", 10, 0);
    /* A backslash that is escaped makes no escape of what follows. */
    expect_input("{\"type\":\"stdin\",\"text\":\"\\\\u0000\"}", "\\u0000", 6, NK_STDIN_NEXT);
    /* What stands in for it meanwhile is itself where there is no NUL. */
    expect_input("{\"type\":\"stdin\",\"text\":\"\\uffff\"}", "\xef\xbf\xbf", 3, NK_STDIN_NEXT);
}

static void a_nul_anywhere_else_is_refused(void **state)
{
    static const char *const texts[] = {
        "{\"type\":\"stdin\",\"text\":\"\\u0000\\uFfFf\"}",
        "{\"type\":\"stdin\",\"text\":\"\\u0000\xef\xbf\xbf\"}",
        "{\"type\":\"stdin\\u0000\",\"text\":\"\"}",
        "{\"type\":\"kill\",\"signal\":\"TERM\\u0000\"}",
        "{\"type\":\"stdin\",\"base64\":\"\\u0000\"}",
        "{\"type\":\"stdin\",\"text\":\"\",\"\\u0000\":1}",
        "\\u0000",
    };
    struct nk_message m;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_not_equal(read_code(texts[i], &m), NK_OK);
}

static void signals_have_names_and_numbers(void **state)
{
    struct nk_message m;

    (void)state;
    assert_int_equal(read_code("{\"type\":\"kill\"}", &m), NK_OK);
    assert_int_equal(m.signo, 9);
    assert_int_equal(read_code("{\"type\":\"kill\",\"signal\":\"SIGTERM\"}", &m), NK_OK);
    assert_int_equal(m.signo, 15);
    assert_int_equal(read_code("{\"type\":\"signal\",\"signal\":2}", &m), NK_OK);
    assert_int_equal(m.signo, 2);
    assert_int_equal(read_code("{\"type\":\"signal\"}", &m), NK_BAD_REQUEST);
    assert_int_equal(read_code("{\"type\":\"signal\",\"signal\":\"X\"}", &m), NK_BAD_SIGNAL);
}

static void sizes_have_bounds(void **state)
{
    struct nk_message m;

    (void)state;
    assert_int_equal(read_code("{\"type\":\"resize\",\"cols\":1,\"rows\":65535}", &m), NK_OK);
    assert_int_equal(m.cols, 1);
    assert_int_equal(m.rows, 65535);
    assert_int_equal(read_code("{\"type\":\"resize\",\"cols\":0,\"rows\":1}", &m), NK_BAD_REQUEST);
    assert_int_equal(read_code("{\"type\":\"resize\",\"cols\":1}", &m), NK_BAD_REQUEST);
}

static void what_is_no_message_says_why(void **state)
{
    struct nk_message m;

    (void)state;
    assert_int_equal(read_code("", &m), NK_BAD_JSON);
    assert_int_equal(read_code("[]", &m), NK_BAD_REQUEST);
    assert_int_equal(read_code("{}", &m), NK_BAD_REQUEST);
    assert_int_equal(read_code("{\"type\":\"start\"}", &m), NK_BAD_REQUEST);
    assert_int_equal(read_code("{\"type\":\"close_stdin\",\"x\":1}", &m), NK_BAD_REQUEST);
}

static void a_session_begins_with_a_start(void **state)
{
    static const char good[] = "{\"type\":\"start\",\"command\":\"true\"}";
    static const char bad[] = "{\"type\":\"kill\"}";
    struct nk_json *root = NULL;
    struct nk_err err;

    (void)state;
    assert_int_equal(nk_message_read_start(good, sizeof good - 1, &root, &err), 0);
    assert_non_null(nk_json_get(root, "command"));
    nk_json_free(root);
    assert_int_equal(nk_message_read_start(bad, sizeof bad - 1, &root, &err), -1);
    assert_int_equal(err.code, NK_BAD_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(input_is_text_or_base64),
        cmocka_unit_test(a_nul_in_a_text_is_a_byte),
        cmocka_unit_test(a_nul_anywhere_else_is_refused),
        cmocka_unit_test(signals_have_names_and_numbers),
        cmocka_unit_test(sizes_have_bounds),
        cmocka_unit_test(what_is_no_message_says_why),
        cmocka_unit_test(a_session_begins_with_a_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
