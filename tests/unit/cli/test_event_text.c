#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/event_text.h"

/* From memory of exactly that size, so that a sanitizer sees a read behind the end. */
static int decode(const char *json, size_t len, struct nk_buf *out)
{
    char *copy = malloc(len > 0 ? len : 1);
    int rc;

    assert_non_null(copy);
    memcpy(copy, json, len);
    rc = nk_event_text_decode(copy, len, out);
    free(copy);
    return rc;
}

static void expect(const char *json, const char *bytes, size_t len)
{
    struct nk_buf out = {0};

    assert_int_equal(decode(json, strlen(json), &out), 0);
    assert_int_equal(nk_buf_left(&out), len);
    if (len > 0)
        assert_memory_equal(nk_buf_front(&out), bytes, len);
    nk_buf_fini(&out);
}

static void text_is_given_byte_for_byte(void **state)
{
    (void)state;
    expect("{\"text\":\"plain h\xc3\xa9\"}", "plain h\xc3\xa9", 8 + 1);
    expect("{\"text\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "\"\\/\b\f\n\r\t", 8);
    expect("{\"text\":\"\"}", "", 0);
    expect("{}", "", 0);
}

static void a_nul_that_a_command_printed_arrives(void **state)
{
    (void)state;
    expect("{\"text\":\"a\\u0000b\"}", "a\0b", 3);
}

static void unicode_escapes_become_utf8(void **state)
{
    (void)state;
    expect("{\"text\":\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"}",
           "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10);
}

static void base64_gives_any_bytes(void **state)
{
    (void)state;
    expect("{\"base64\":\"//4K\"}", "\xff\xfe\n", 3);
    expect("{\"base64\":\"/w==\"}", "\xff", 1);
}

static void other_scalar_members_are_passed_over(void **state)
{
    (void)state;
    expect("{\"offset\":12, \"note\":\"x\\ny\", \"text\":\"a\", \"ok\":true}", "a", 1);
}

static void what_is_not_such_an_object_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "x",
        "{",
        "[]",
        "{\"text\"}",
        "{\"text\":1}",
        "{\"text\":\"a",
        "{\"text\":\"a\\",
        "{\"text\":\"\\q\"}",
        "{\"text\":\"\\u12\"}",
        "{\"text\":\"\\ud800\"}",
        "{\"text\":\"\\ud800\\u0041\"}",
        "{\"text\":\"\\udc00\"}",
        "{\"text\":\"a\"}x",
        "{\"text\":\"a\",}",
        "{\"base64\":\"a\"}",
        "{\"x\":{\"text\":\"a\"}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct nk_buf out = {0};

        assert_int_equal(decode(bad[i], strlen(bad[i]), &out), -EINVAL);
        assert_int_equal(nk_buf_left(&out), 0);
        nk_buf_fini(&out);
    }
}

static void every_cut_of_an_event_is_refused(void **state)
{
    static const char whole[] = "{\"text\":\"a\\n\\u0041\\ud83d\\ude00\",\"base64\":\"//4K\"}";

    (void)state;
    for (size_t len = 0; len < sizeof whole - 1; len++) {
        struct nk_buf out = {0};

        assert_int_equal(decode(whole, len, &out), -EINVAL);
        nk_buf_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_given_byte_for_byte),
        cmocka_unit_test(a_nul_that_a_command_printed_arrives),
        cmocka_unit_test(unicode_escapes_become_utf8),
        cmocka_unit_test(base64_gives_any_bytes),
        cmocka_unit_test(other_scalar_members_are_passed_over),
        cmocka_unit_test(what_is_not_such_an_object_is_refused),
        cmocka_unit_test(every_cut_of_an_event_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
