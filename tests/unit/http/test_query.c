#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "http/query.h"

static const struct nk_route row = {"GET", "/x", "x", .query = {"path", "tail"}};

static int parse(struct nk_arena *arena, const char *text, struct nk_query *out, struct nk_err *err)
{
    return nk_query_parse(arena, text, strlen(text), out, err);
}

static void names_and_values_are_decoded_once(void **state)
{
    struct nk_arena arena = {0};
    struct nk_query q;

    (void)state;
    assert_int_equal(parse(&arena, "path=%2Fa%20b+c%2Bd%2525&t%61il", &q, NULL), 0);
    assert_int_equal(q.count, 2);
    assert_string_equal(q.pair[0].name, "path");
    assert_string_equal(q.pair[0].value, "/a b c+d%25");
    assert_int_equal(q.pair[0].len, 11);
    assert_string_equal(q.pair[1].name, "tail");
    assert_string_equal(q.pair[1].value, "");
    nk_arena_fini(&arena);
}

static void an_equals_sign_in_a_value_is_part_of_it(void **state)
{
    struct nk_arena arena = {0};
    struct nk_query q;

    (void)state;
    assert_int_equal(parse(&arena, "&&path=a=b&", &q, NULL), 0);
    assert_int_equal(q.count, 1);
    assert_string_equal(q.pair[0].value, "a=b");
    nk_arena_fini(&arena);
}

static void bytes_that_are_not_utf8_pass(void **state)
{
    struct nk_arena arena = {0};
    struct nk_query q;

    (void)state;
    assert_int_equal(parse(&arena, "path=%ff%FE", &q, NULL), 0);
    assert_string_equal(q.pair[0].value, "\xff\xfe");
    nk_arena_fini(&arena);
}

static void bad_escapes_and_nul_are_refused_whole(void **state)
{
    static const char *const bad[] = {"path=%",    "path=%4",   "path=%zz",       "path=%4g",
                                      "path=a%00", "pa%00th=a", "tail=1&path=%-1"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct nk_arena arena = {0};
        struct nk_query q;
        struct nk_err err = {0};

        assert_int_equal(parse(&arena, bad[i], &q, &err), -1);
        assert_int_equal(err.code, NK_BAD_REQUEST);
        assert_int_equal(q.count, 0);
        nk_arena_fini(&arena);
    }
}

static void assert_refused(const char *text, const char *named)
{
    struct nk_arena arena = {0};
    struct nk_query q;
    struct nk_err err = {0};

    assert_int_equal(parse(&arena, text, &q, NULL), 0);
    assert_int_equal(nk_query_check(&q, &row, &err), -1);
    assert_int_equal(err.code, NK_BAD_REQUEST);
    assert_non_null(strstr(err.msg, named));
    nk_arena_fini(&arena);
}

static void an_unknown_parameter_is_named(void **state)
{
    (void)state;
    assert_refused("path=a&colour=blue", "colour");
    assert_refused("Path=a", "Path");
    assert_refused("=a", "parameter: ");
}

static void a_parameter_given_twice_is_named(void **state)
{
    (void)state;
    assert_refused("path=a&tail=1&path=a", "path");
    assert_refused("path=a&p%61th=b", "path");
}

static void more_parameters_than_there_can_be_are_refused(void **state)
{
    char text[512] = "";
    size_t len = 0;

    (void)state;
    for (int i = 0; i < NK_QUERY_MAX + 8; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "&path=%c", 'a' + i);
    assert_refused(text, "path");
}

static void one_parameter_of_a_row_may_come_again(void **state)
{
    static const struct nk_route many = {.query = {"path", "tail"}, .query_many = "path"};
    struct nk_arena arena = {0};
    struct nk_query q;
    struct nk_err err = {0};
    char text[1024] = "";
    size_t len = 0;

    (void)state;
    assert_int_equal(parse(&arena, "path=a&tail=1&path=b", &q, NULL), 0);
    assert_int_equal(nk_query_check(&q, &many, NULL), 0);
    assert_int_equal(parse(&arena, "path=a&tail=1&tail=2", &q, NULL), 0);
    assert_int_equal(nk_query_check(&q, &many, NULL), -1);
    for (int i = 0; i <= NK_QUERY_MAX; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "&path=%d", i);
    assert_int_equal(parse(&arena, text, &q, NULL), 0);
    assert_int_equal(nk_query_check(&q, &many, &err), -1);
    assert_non_null(strstr(err.msg, "more than"));
    nk_arena_fini(&arena);
}

static void what_a_row_knows_passes(void **state)
{
    struct nk_arena arena = {0};
    struct nk_query q;

    (void)state;
    assert_int_equal(parse(&arena, "tail=1&path=a", &q, NULL), 0);
    assert_int_equal(nk_query_check(&q, &row, NULL), 0);
    assert_int_equal(parse(&arena, "", &q, NULL), 0);
    assert_int_equal(q.count, 0);
    assert_int_equal(nk_query_check(&q, &row, NULL), 0);
    nk_arena_fini(&arena);
}

static void in_a_path_a_plus_is_a_plus(void **state)
{
    struct nk_arena arena = {0};
    size_t len = 0;

    (void)state;
    assert_string_equal(nk_query_decode(&arena, "a+b%2f", 6, false, &len, NULL), "a+b/");
    assert_int_equal(len, 4);
    nk_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_values_are_decoded_once),
        cmocka_unit_test(an_equals_sign_in_a_value_is_part_of_it),
        cmocka_unit_test(bytes_that_are_not_utf8_pass),
        cmocka_unit_test(bad_escapes_and_nul_are_refused_whole),
        cmocka_unit_test(an_unknown_parameter_is_named),
        cmocka_unit_test(a_parameter_given_twice_is_named),
        cmocka_unit_test(more_parameters_than_there_can_be_are_refused),
        cmocka_unit_test(one_parameter_of_a_row_may_come_again),
        cmocka_unit_test(what_a_row_knows_passes),
        cmocka_unit_test(in_a_path_a_plus_is_a_plus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
