#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/json_check.h"

/* A copy of exactly this length, so that a sanitizer sees a read beyond it. */
static int check(const char *text, size_t len, const char **why, size_t *at)
{
    char *exact = malloc(len ? len : 1);
    int rc;

    assert_non_null(exact);
    memcpy(exact, text, len);
    rc = nk_json_check(exact, len, why, at);
    free(exact);
    return rc;
}

static void good_texts_pass(void **state)
{
    static const char *const good[] = {
        "null",
        " true ",
        "false",
        "0",
        "-0",
        "12",
        "-1.5e+10",
        "1E5",
        "1e-999",
        "1e999",
        "\"\"",
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[1,2]",
        "\t[\n1\r,2 ]",
        "{\"a\":1,\"b\":{\"a\":2}}",
        "[{\"a\":1},{\"a\":2}]",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\\u0041\\uD83d\\uDe00\"",
        "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"",
        "{\"\":0}",
        "\"\x7f\"",
        "\"\\u0001\"",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
        "123456789012345678901234567890123456789012345678901234567890123",
    };
    const char *why;
    size_t at;

    (void)state;
    for (size_t i = 0; i < NK_COUNT(good); i++) {
        if (check(good[i], strlen(good[i]), &why, &at) != 0)
            fail_msg("%s: %s at %zu", good[i], why, at);
    }
}

static void bad_texts_are_refused_where_they_are_bad(void **state)
{
    static const struct {
        const char *text;
        size_t at;
    } bad[] = {
        {"", 0},
        {" ", 1},
        {"nul", 0},
        {"nulL", 0},
        {"True", 0},
        {"1 2", 2},
        {"1,", 1},
        {"[1]x", 3},
        {"{}{}", 2},
        {"[", 1},
        {"]", 0},
        {"[1,]", 3},
        {"[,1]", 1},
        {"[1 2]", 3},
        {"[1}", 2},
        {"{", 1},
        {"{\"a\"}", 4},
        {"{\"a\":}", 5},
        {"{\"a\":1,}", 7},
        {"{a:1}", 1},
        {"{1:1}", 1},
        {"{\"a\":1]", 6},
        {"{\"a\" 1}", 5},
        {"{\"a\":1 \"b\":2}", 7},
        {"{,}", 1},
        {"01", 0},
        {"-", 0},
        {"-a", 0},
        {"+1", 0},
        {"1.", 0},
        {".5", 0},
        {"1e", 0},
        {"1e+", 0},
        {"0x10", 1},
        {"NaN", 0},
        {"Infinity", 0},
        {"-Infinity", 0},
        {"1_0", 1},
        {"-01", 0},
        {"\"", 1},
        {"\"abc", 4},
        {"\"\\", 2},
        {"\"\\x\"", 1},
        {"\"\\u12\"", 1},
        {"\"\\u12g4\"", 1},
        {"\"\\u0000\"", 1},
        {"\"\\ud800\"", 1},
        {"\"\\udc00\"", 1},
        {"\"\\ud800\\u0041\"", 1},
        {"\"\\ud800x\"", 1},
        {"\"a\nb\"", 2},
        {"\"\t\"", 1},
        {"\"\x1f\"", 1},
        {"'a'", 0},
        {"// c\n1", 0},
        {"/* c */1", 0},
        {"\xef\xbb\xbf"
         "1",
         0},
        {"\"\xff\"", 1},
        {"\"\xc3\"", 1},
        {"\"\xed\xa0\x80\"", 1},
        {"\xc2\xa0"
         "1",
         0},
        {"\f1", 0},
        {"\v1", 0},
        {"{\"a\":1,\"a\":2}", 7},
        {"{\"a\":1,\"\\u0061\":2}", 7},
        {"{\"\xc3\xa4\":1,\"\\u00E4\":2}", 8},
        {"{\"\\uD83D\\uDE00\":1,\"\xf0\x9f\x98\x80\":2}", 18},
        {"{\"\\b\\f\\r\\t\\/\":1,\"\\u0008\\u000C\\u000d\\u0009/\":2}", 16},
        {"{\"\\n\":1,\"\\u000a\":2}", 8},
        {"{\"\":1,\"\":2}", 6},
        {"[{\"x\":{\"a\":1,\"a\":2}}]", 13},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", 32},
        {"1234567890123456789012345678901234567890123456789012345678901234", 0},
    };

    (void)state;
    for (size_t i = 0; i < NK_COUNT(bad); i++) {
        const char *why = NULL;
        size_t at = 999;

        if (check(bad[i].text, strlen(bad[i].text), &why, &at) != -EINVAL || at != bad[i].at)
            fail_msg("%s: %zu, %s", bad[i].text, at, why ? why : "passed");
        assert_non_null(why);
    }
}

static void every_beginning_of_a_text_is_refused(void **state)
{
    static const char text[] =
        "{\"a\":[1.5e3,true,\"\\ud83d\\ude00\\n\",{\"b\":null}],\"\xc3\xa4\":-0}";
    const char *why;
    size_t at;

    (void)state;
    for (size_t len = 0; len + 1 < sizeof text; len++)
        assert_int_equal(check(text, len, &why, &at), -EINVAL);
    assert_int_equal(check(text, sizeof text - 1, &why, &at), 0);
}

static void a_nul_byte_is_no_end(void **state)
{
    const char *why;
    size_t at;

    (void)state;
    assert_int_equal(check("1\0", 2, &why, &at), -EINVAL);
    assert_int_equal(check("\"a\0b\"", 5, &why, &at), -EINVAL);
    assert_int_equal(at, 2);
}

static void specials_are_seen_at_every_place_of_a_long_string(void **state)
{
    char text[70];
    const char *why;
    size_t at;

    (void)state;
    for (size_t i = 1; i + 1 < sizeof text; i++) {
        memset(text, 'a', sizeof text);
        text[0] = '"';
        text[sizeof text - 1] = '"';
        assert_int_equal(check(text, sizeof text, &why, &at), 0);
        text[i] = '\x1f';
        assert_int_equal(check(text, sizeof text, &why, &at), -EINVAL);
        assert_int_equal(at, i);
        text[i] = '"';
        assert_int_equal(check(text, sizeof text, &why, &at), -EINVAL);
        assert_int_equal(at, i + 1);
    }
}

/* "[0,0,…]" of n values and the array itself. */
static int check_zeros(size_t n)
{
    char *text = malloc(2 * n + 1);
    const char *why;
    size_t at;
    int rc;

    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        memcpy(text + 2 * i, i ? ",0" : "[0", 2);
    text[2 * n] = ']';
    rc = nk_json_check(text, 2 * n + 1, &why, &at);
    free(text);
    return rc;
}

static void the_number_of_values_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(check_zeros(NK_JSON_MAX_VALUES - 1), 0);
    assert_int_equal(check_zeros(NK_JSON_MAX_VALUES), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_texts_pass),
        cmocka_unit_test(bad_texts_are_refused_where_they_are_bad),
        cmocka_unit_test(every_beginning_of_a_text_is_refused),
        cmocka_unit_test(a_nul_byte_is_no_end),
        cmocka_unit_test(specials_are_seen_at_every_place_of_a_long_string),
        cmocka_unit_test(the_number_of_values_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
