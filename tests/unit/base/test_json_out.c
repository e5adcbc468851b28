#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/json_out.h"

static void assert_text(struct nk_buf *b, const char *want)
{
    assert_false(b->failed);
    nk_buf_add_char(b, '\0');
    assert_string_equal((const char *)nk_buf_front(b), want);
    nk_buf_fini(b);
}

static void commas_stand_where_they_belong(void **state)
{
    struct nk_buf b = {0};
    struct nk_json_out o = {.buf = &b};

    (void)state;
    nk_json_out_open(&o, NULL, '{');
    nk_json_out_u64(&o, "a", 1);
    nk_json_out_open(&o, "b", '[');
    nk_json_out_close(&o, ']');
    nk_json_out_open(&o, "c", '[');
    nk_json_out_open(&o, NULL, '{');
    nk_json_out_close(&o, '}');
    nk_json_out_str(&o, NULL, "x");
    nk_json_out_null(&o, NULL);
    nk_json_out_close(&o, ']');
    nk_json_out_bool(&o, "d", true);
    nk_json_out_bool(&o, "e", false);
    nk_json_out_close(&o, '}');
    assert_text(&b, "{\"a\":1,\"b\":[],\"c\":[{},\"x\",null],\"d\":true,\"e\":false}");
}

static void scalars_are_written_exactly(void **state)
{
    struct nk_buf b = {0};
    struct nk_json_out o = {.buf = &b};

    (void)state;
    nk_json_out_i64(&o, NULL, INT64_MIN);
    nk_json_out_i64(&o, NULL, 5);
    nk_json_out_u64(&o, NULL, UINT64_MAX);
    nk_json_out_real(&o, NULL, 0.1);
    nk_json_out_real(&o, NULL, 1.0 / 3);
    nk_json_out_real(&o, NULL, 1e300);
    nk_json_out_real(&o, NULL, (double)NAN);
    nk_json_out_real(&o, NULL, -(double)INFINITY);
    nk_json_out_str(&o, NULL, NULL);
    nk_json_out_time(&o, NULL, 0);
    nk_json_out_time(&o, NULL, 1);
    nk_json_out_raw(&o, NULL, "[1]", 3);
    nk_json_out_base64(&o, NULL, "\xff\x00", 2);
    nk_json_out_strn(&o, NULL, "abc", 2);
    assert_text(&b,
                "-9223372036854775808,5,18446744073709551615,0.1,0.3333333333333333,1e+300,null,"
                "null,null,null,\"1970-01-01T00:00:00.001Z\",[1],\"/wA=\",\"ab\"");
}

static void keys_are_escaped(void **state)
{
    struct nk_buf b = {0};
    struct nk_json_out o = {.buf = &b};

    (void)state;
    nk_json_out_u64(&o, "a\"b\n", 1);
    assert_text(&b, "\"a\\\"b\\n\":1");
}

static void lost_bytes_come_as_base64_too(void **state)
{
    struct nk_buf b = {0};
    struct nk_json_out o = {.buf = &b};

    (void)state;
    nk_json_out_open(&o, NULL, '{');
    nk_json_out_bytes(&o, "a", "ok\xc3\xa4", 4);
    nk_json_out_bytes(&o, "b", "x\xff\n", 3);
    nk_json_out_bytes(&o, "c", "", 0);
    nk_json_out_close(&o, '}');
    assert_text(
        &b, "{\"a\":\"ok\xc3\xa4\",\"b\":\"x\xef\xbf\xbd\\n\",\"b_base64\":\"eP8K\",\"c\":\"\"}");
}

/* What a reader of JSON makes of the escaped text must be the text. */
static void assert_survives(const char *text, size_t len)
{
    struct nk_buf b = {0};
    struct nk_json *root;
    struct nk_err err;

    nk_buf_add_char(&b, '"');
    nk_json_out_escape(&b, text, len);
    nk_buf_add_char(&b, '"');
    assert_false(b.failed);
    if (nk_json_parse(nk_buf_front(&b), nk_buf_left(&b), &root, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(strlen(nk_json_str(root)), len);
    assert_memory_equal(nk_json_str(root), text, len);
    nk_json_free(root);
    nk_buf_fini(&b);
}

static void every_byte_survives_at_every_place(void **state)
{
    char text[40];

    (void)state;
    for (int c = 1; c < 128; c++) {
        for (size_t at = 0; at < sizeof text; at++) {
            memset(text, 'a', sizeof text);
            text[at] = (char)c;
            assert_survives(text, sizeof text);
        }
    }
}

static void mixed_texts_survive_at_every_length(void **state)
{
    static char text[3000];
    uint32_t seed = 7;

    (void)state;
    for (size_t n = 0; n < sizeof text; n++) {
        seed = seed * 1664525 + 1013904223;
        text[n] = (char)(seed >> 28 ? 'a' + (seed >> 24) % 26 : 1 + (seed >> 20) % 127);
    }
    for (size_t n = 0; n < sizeof text; n += n < 100 ? 1 : 97)
        assert_survives(text, n);
    memset(text, '\n', sizeof text);
    assert_survives(text, sizeof text);
    memset(text, '\x01', sizeof text);
    assert_survives(text, sizeof text);
}

static void escapes_are_the_short_ones(void **state)
{
    struct nk_buf b = {0};

    (void)state;
    nk_json_out_escape(&b, "\b\t\n\f\r\"\\\0\x1f\x7f/", 11);
    assert_text(&b, "\\b\\t\\n\\f\\r\\\"\\\\\\u0000\\u001f\x7f/");
}

static void a_bound_is_reached_to_the_byte(void **state)
{
    static const char line[] = "0123456789012345678901234567890123456789\n";

    (void)state;
    for (size_t max = 1; max < 120; max++) {
        struct nk_buf b = {.max = max};

        nk_json_out_escape(&b, line, 41);
        assert_int_equal(b.failed, max < 42);
        nk_json_out_escape(&b, line, 41);
        assert_int_equal(b.failed, max < 84);
        nk_buf_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_stand_where_they_belong),
        cmocka_unit_test(scalars_are_written_exactly),
        cmocka_unit_test(keys_are_escaped),
        cmocka_unit_test(lost_bytes_come_as_base64_too),
        cmocka_unit_test(every_byte_survives_at_every_place),
        cmocka_unit_test(mixed_texts_survive_at_every_length),
        cmocka_unit_test(escapes_are_the_short_ones),
        cmocka_unit_test(a_bound_is_reached_to_the_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
