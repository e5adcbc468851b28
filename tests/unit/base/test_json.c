#include <cjson/cJSON.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"

static struct nk_json *parse(const char *text)
{
    struct nk_json *root = NULL;
    struct nk_err err;

    if (nk_json_parse(text, strlen(text), &root, &err) < 0)
        fail_msg("%s: %s", text, err.msg);
    return root;
}

static void values_have_their_types(void **state)
{
    static const enum nk_json_type want[] = {NK_JSON_NULL,   NK_JSON_BOOL,   NK_JSON_BOOL,
                                             NK_JSON_NUMBER, NK_JSON_STRING, NK_JSON_ARRAY,
                                             NK_JSON_OBJECT};
    struct nk_json *root = parse("[null,true,false,-2.5,\"x\",[],{}]");
    const struct nk_json *v = nk_json_first(root);

    (void)state;
    assert_int_equal(nk_json_count(root), NK_COUNT(want));
    for (size_t i = 0; i < NK_COUNT(want); i++, v = nk_json_next(v)) {
        assert_int_equal(nk_json_type(v), want[i]);
        assert_int_equal(nk_json_true(v), i == 1);
        assert_true(nk_json_num(v) == (want[i] == NK_JSON_NUMBER ? -2.5 : 0));
        if (want[i] == NK_JSON_STRING)
            assert_string_equal(nk_json_str(v), "x");
        else
            assert_null(nk_json_str(v));
    }
    assert_null(v);
    assert_string_equal(nk_json_type_name(root), "an array");
    nk_json_free(root);
    nk_json_free(NULL);
}

static void strings_are_decoded(void **state)
{
    struct nk_json *root = parse("\"\\u00e4\\ud83d\\ude00\\n\\\"\xc3\xa4\"");

    (void)state;
    assert_string_equal(nk_json_str(root), "\xc3\xa4\xf0\x9f\x98\x80\n\"\xc3\xa4");
    nk_json_free(root);
}

static void members_come_in_order_and_by_exact_name(void **state)
{
    struct nk_json *root = parse("{\"b\":1,\"a\":2,\"A\":3}");
    const struct nk_json *v = nk_json_first(root);

    (void)state;
    assert_string_equal(nk_json_key(v), "b");
    assert_string_equal(nk_json_key(nk_json_next(v)), "a");
    assert_true(nk_json_num(nk_json_get(root, "A")) == 3);
    assert_null(nk_json_get(root, "B"));
    assert_null(nk_json_get(v, "a"));
    nk_json_free(root);
}

static void a_bad_text_says_where_and_leaves_the_result(void **state)
{
    struct nk_json *root = (struct nk_json *)(void *)state;
    struct nk_err err;

    assert_int_equal(nk_json_parse("{\"a\":tru}", 9, &root, &err), -1);
    assert_int_equal(err.code, NK_BAD_JSON);
    assert_non_null(strstr(err.msg, "byte 5"));
    assert_ptr_equal(root, state);
    assert_int_equal(nk_json_parse(NULL, 0, &root, &err), -1);
    assert_int_equal(err.code, NK_BAD_JSON);
}

static int allocations_left;

static void *scarce_malloc(size_t n)
{
    return allocations_left-- > 0 ? malloc(n) : NULL;
}

static void missing_memory_is_overload_at_every_allocation(void **state)
{
    static const char text[] = "{\"a\":[1,\"two\",{\"b\":null}],\"c\":\"d\"}";
    cJSON_Hooks scarce = {scarce_malloc, free};
    struct nk_json *root = NULL;
    struct nk_err err;
    int n = 0;

    (void)state;
    cJSON_InitHooks(&scarce);
    for (;; n++) {
        allocations_left = n;
        if (nk_json_parse(text, sizeof text - 1, &root, &err) == 0)
            break;
        assert_int_equal(err.code, NK_OVERLOADED);
        assert_true(n < 100);
    }
    assert_true(n > 5);
    nk_json_free(root);
    cJSON_InitHooks(NULL);
}

static void an_unknown_field_is_named(void **state)
{
    static const char *const names[] = {"a", "b"};
    struct nk_json *root = parse("{\"b\":1,\"zebra\":2}");
    struct nk_json *list = parse("[]");
    struct nk_err err;

    (void)state;
    assert_int_equal(nk_json_only(root, names, 2, &err), -1);
    assert_int_equal(err.code, NK_BAD_REQUEST);
    assert_non_null(strstr(err.msg, "\"zebra\""));
    assert_int_equal(nk_json_only(list, names, 2, &err), -1);
    assert_non_null(strstr(err.msg, "not an array"));
    nk_json_free(root);
    nk_json_free(list);
    root = parse("{\"a\":1,\"b\":2}");
    assert_int_equal(nk_json_only(root, names, 2, &err), 0);
    nk_json_free(root);
}

static void a_missing_member_changes_nothing(void **state)
{
    struct nk_json *root = parse("{}");
    const char *str = "kept";
    bool yes = true, given = true;
    uint64_t num = 7, ms = 8;
    uint8_t *bytes = NULL;
    size_t len = 9;

    (void)state;
    assert_int_equal(nk_json_read_str(root, "x", &str, NULL), 0);
    assert_int_equal(nk_json_read_bool(root, "x", &yes, NULL), 0);
    assert_int_equal(nk_json_read_u64(root, "x", 0, 1, &num, NULL), 0);
    assert_int_equal(nk_json_read_seconds(root, "x", 1, &ms, NULL), 0);
    assert_int_equal(nk_json_read_bytes(root, "x", &bytes, &len, &given, NULL), 0);
    assert_string_equal(str, "kept");
    assert_true(yes && num == 7 && ms == 8 && len == 9 && !bytes && !given);
    nk_json_free(root);
}

static void a_wrong_type_is_told_with_its_field(void **state)
{
    struct nk_json *root = parse("{\"x\":null}");
    const char *str = NULL;
    bool yes, given;
    uint64_t num;
    uint8_t *bytes;
    size_t len;
    struct nk_err err = {0};

    (void)state;
    assert_int_equal(nk_json_read_str(root, "x", &str, &err), -1);
    assert_string_equal(err.msg, "x must be a string, not null");
    assert_int_equal(err.code, NK_BAD_REQUEST);
    assert_int_equal(nk_json_read_bool(root, "x", &yes, &err), -1);
    assert_string_equal(err.msg, "x must be true or false, not null");
    assert_int_equal(nk_json_read_u64(root, "x", 0, 1, &num, &err), -1);
    assert_string_equal(err.msg, "x must be a number, not null");
    assert_int_equal(nk_json_read_seconds(root, "x", 1, &num, &err), -1);
    assert_int_equal(nk_json_read_bytes(root, "x", &bytes, &len, &given, &err), -1);
    assert_int_equal(err.code, NK_BAD_REQUEST);
    nk_json_free(root);
}

static void good_fields_are_read(void **state)
{
    struct nk_json *root = parse("{\"s\":\"text\",\"b\":false,\"n\":9007199254740992,\"z\":0}");
    const char *str = NULL;
    bool yes = true;
    uint64_t num = 7;

    (void)state;
    assert_int_equal(nk_json_read_str(root, "s", &str, NULL), 0);
    assert_string_equal(str, "text");
    assert_int_equal(nk_json_read_bool(root, "b", &yes, NULL), 0);
    assert_false(yes);
    assert_int_equal(nk_json_read_u64(root, "n", 0, UINT64_MAX, &num, NULL), 0);
    assert_true(num == UINT64_C(9007199254740992));
    assert_int_equal(nk_json_read_u64(root, "z", 0, 10, &num, NULL), 0);
    assert_true(num == 0);
    nk_json_free(root);
}

static void whole_numbers_keep_to_their_range(void **state)
{
    static const char *const bad[] = {
        "{\"n\":-1}",   "{\"n\":4}",     "{\"n\":11}",     "{\"n\":5.5}",
        "{\"n\":1e99}", "{\"n\":1e999}", "{\"n\":-1e999}", "{\"n\":18446744073709551616}"};
    uint64_t num = 7;

    (void)state;
    for (size_t i = 0; i < NK_COUNT(bad); i++) {
        struct nk_json *root = parse(bad[i]);
        struct nk_err err;

        assert_int_equal(nk_json_read_u64(root, "n", 5, 10, &num, &err), -1);
        assert_string_equal(err.msg, "n must be a whole number from 5 to 10");
        assert_true(num == 7);
        nk_json_free(root);
    }
}

static void seconds_become_milliseconds_rounded_up(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms; /* 0: refused */
    } want[] = {
        {"{\"t\":1}", 1000},    {"{\"t\":0.0001}", 1},    {"{\"t\":1.1}", 1100},
        {"{\"t\":0.29}", 290},  {"{\"t\":1.0005}", 1001}, {"{\"t\":100}", 100000},
        {"{\"t\":1e-9}", 1},    {"{\"t\":0}", 0},         {"{\"t\":-1}", 0},
        {"{\"t\":100.001}", 0}, {"{\"t\":1e99}", 0},      {"{\"t\":1e999}", 0},
        {"{\"t\":\"1\"}", 0},
    };

    (void)state;
    for (size_t i = 0; i < NK_COUNT(want); i++) {
        struct nk_json *root = parse(want[i].text);
        struct nk_err err = {0};
        uint64_t ms = 77;
        int rc = nk_json_read_seconds(root, "t", 100, &ms, &err);

        assert_int_equal(rc, want[i].ms ? 0 : -1);
        assert_true(ms == (want[i].ms ? want[i].ms : 77));
        assert_int_equal(err.code, want[i].ms ? NK_OK : NK_BAD_REQUEST);
        nk_json_free(root);
    }
}

static void no_bound_is_still_a_bound_of_the_clock(void **state)
{
    struct nk_json *root = parse("{\"t\":1e11,\"u\":1e300}");
    uint64_t ms = 0;
    struct nk_err err;

    (void)state;
    assert_int_equal(nk_json_read_seconds(root, "t", 1e308, &ms, &err), 0);
    assert_true(ms == UINT64_C(100000000000000));
    assert_int_equal(nk_json_read_seconds(root, "u", 1e308, &ms, &err), -1);
    nk_json_free(root);
}

static void bytes_come_as_text_or_base64(void **state)
{
    struct nk_json *root = parse("{\"a\":\"\xc3\xa4\",\"b_base64\":\"AP8=\",\"c\":\"\","
                                 "\"d\":\"x\",\"d_base64\":\"eA==\",\"e_base64\":\"A\"}");
    uint8_t *bytes = NULL;
    size_t len = 0;
    bool given = false;
    struct nk_err err;

    (void)state;
    assert_int_equal(nk_json_read_bytes(root, "a", &bytes, &len, &given, &err), 0);
    assert_true(given && len == 2);
    assert_memory_equal(bytes, "\xc3\xa4", 2);
    free(bytes);
    assert_int_equal(nk_json_read_bytes(root, "b", &bytes, &len, &given, &err), 0);
    assert_true(given && len == 2);
    assert_memory_equal(bytes, "\0\xff", 2);
    free(bytes);
    assert_int_equal(nk_json_read_bytes(root, "c", &bytes, &len, &given, &err), 0);
    assert_true(given && len == 0 && bytes);
    free(bytes);
    assert_int_equal(nk_json_read_bytes(root, "d", &bytes, &len, &given, &err), -1);
    assert_string_equal(err.msg, "give d or d_base64, not both");
    assert_int_equal(nk_json_read_bytes(root, "e", &bytes, &len, &given, &err), -1);
    assert_int_equal(err.code, NK_BAD_REQUEST);
    nk_json_free(root);
}

static void bytes_may_stand_under_any_two_names(void **state)
{
    struct nk_json *root = parse("{\"text\":\"a\",\"base64\":\"eA==\",\"b\":\"eHk=\"}");
    struct nk_json_bytes bytes = {0};
    struct nk_err err;

    (void)state;
    assert_int_equal(nk_json_read_either(root, "text", "base64", &bytes, &err), -1);
    assert_string_equal(err.msg, "give text or base64, not both");
    assert_int_equal(nk_json_read_either(root, "none", "b", &bytes, &err), 0);
    assert_true(bytes.given && bytes.len == 2);
    assert_memory_equal(bytes.data, "xy", 2);
    free(bytes.data);
    nk_json_free(root);
}

static void a_long_unknown_name_is_cut_between_characters(void **state)
{
    static const char *const names[] = {"a"};
    char text[300] = "{\"x";
    struct nk_json *root;
    struct nk_err err;

    (void)state;
    for (size_t i = 0; i < 60; i++)
        memcpy(text + 3 + 3 * i, "\xe2\x82\xac", 3);
    memcpy(text + 183, "\":1}", 5);
    root = parse(text);
    assert_int_equal(nk_json_only(root, names, 1, &err), -1);
    assert_null(strchr(err.msg, '?'));
    assert_true(strlen(err.msg) < 100);
    nk_json_free(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_their_types),
        cmocka_unit_test(strings_are_decoded),
        cmocka_unit_test(members_come_in_order_and_by_exact_name),
        cmocka_unit_test(a_bad_text_says_where_and_leaves_the_result),
        cmocka_unit_test(missing_memory_is_overload_at_every_allocation),
        cmocka_unit_test(an_unknown_field_is_named),
        cmocka_unit_test(a_missing_member_changes_nothing),
        cmocka_unit_test(a_wrong_type_is_told_with_its_field),
        cmocka_unit_test(good_fields_are_read),
        cmocka_unit_test(whole_numbers_keep_to_their_range),
        cmocka_unit_test(seconds_become_milliseconds_rounded_up),
        cmocka_unit_test(no_bound_is_still_a_bound_of_the_clock),
        cmocka_unit_test(bytes_come_as_text_or_base64),
        cmocka_unit_test(bytes_may_stand_under_any_two_names),
        cmocka_unit_test(a_long_unknown_name_is_cut_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
