#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/range.h"

static const struct nk_range_file file = {
    .etag = "\"v1\"", .mtime = 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */, .size = 1000};

struct range_case {
    const char *value;
    enum nk_range want;
    uint64_t from;
    uint64_t len;
};

static void a_range_is_a_part_or_the_whole_or_beyond(void **state)
{
    static const struct range_case cases[] = {
        {NULL, NK_RANGE_WHOLE, 0, 0},
        {"bytes=0-0", NK_RANGE_PART, 0, 1},
        {"bytes=0-", NK_RANGE_PART, 0, 1000},
        {"BYTES=10-19", NK_RANGE_PART, 10, 10},
        {"bytes= 10-19 ", NK_RANGE_PART, 10, 10},
        {"bytes=990-99999999999999999", NK_RANGE_PART, 990, 10},
        {"bytes=-1", NK_RANGE_PART, 999, 1},
        {"bytes=-1000", NK_RANGE_PART, 0, 1000},
        {"bytes=-5000", NK_RANGE_PART, 0, 1000},
        {"bytes=-0", NK_RANGE_BEYOND, 0, 0},
        {"bytes=1000-", NK_RANGE_BEYOND, 0, 0},
        {"bytes=1000-1001", NK_RANGE_BEYOND, 0, 0},
        {"bytes=18446744073709551615-", NK_RANGE_WHOLE, 0, 0},
        {"bytes=0-18446744073709551616", NK_RANGE_WHOLE, 0, 0},
        {"bytes=5-4", NK_RANGE_WHOLE, 0, 0},
        {"bytes=0-1,4-5", NK_RANGE_WHOLE, 0, 0},
        {"bytes=-", NK_RANGE_WHOLE, 0, 0},
        {"bytes=a-", NK_RANGE_WHOLE, 0, 0},
        {"bytes=1", NK_RANGE_WHOLE, 0, 0},
        {"bytes=1-2x", NK_RANGE_WHOLE, 0, 0},
        {"bytes", NK_RANGE_WHOLE, 0, 0},
        {"", NK_RANGE_WHOLE, 0, 0},
        {"items=0-1", NK_RANGE_WHOLE, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t from = 0, len = 0;
        enum nk_range got = nk_range_parse(cases[i].value, 1000, &from, &len);

        if (got != cases[i].want || from != cases[i].from || len != cases[i].len)
            fail_msg("%s: %d %lu %lu", cases[i].value ? cases[i].value : "none", got, from, len);
    }
}

static void nothing_of_an_empty_file_can_be_asked_for(void **state)
{
    uint64_t from = 0, len = 0;

    (void)state;
    assert_int_equal(nk_range_parse("bytes=0-", 0, &from, &len), NK_RANGE_BEYOND);
    assert_int_equal(nk_range_parse("bytes=-1", 0, &from, &len), NK_RANGE_BEYOND);
}

static void dates_are_read_in_their_three_forms(void **state)
{
    (void)state;
    assert_int_equal(nk_range_parse_date("Sun, 06 Nov 1994 08:49:37 GMT"), file.mtime);
    assert_int_equal(nk_range_parse_date("Sunday, 06-Nov-94 08:49:37 GMT"), file.mtime);
    assert_int_equal(nk_range_parse_date("Sun Nov  6 08:49:37 1994"), file.mtime);
    assert_int_equal(nk_range_parse_date("Sun, 06 Nov 1994 08:49:37"), -1);
    assert_int_equal(nk_range_parse_date("1994-11-06T08:49:37Z"), -1);
    assert_int_equal(nk_range_parse_date(""), -1);
}

static int judge(struct nk_range_ask ask)
{
    uint64_t from, len;

    return nk_range_judge(&ask, &file, &from, &len);
}

static void conditions_come_in_their_order(void **state)
{
    static const char *const then = "Sun, 06 Nov 1994 08:49:37 GMT";
    static const char *const before = "Sat, 05 Nov 1994 08:49:37 GMT";

    (void)state;
    assert_int_equal(judge((struct nk_range_ask){0}), 200);
    assert_int_equal(judge((struct nk_range_ask){.if_match = "W/\"v1\""}), 412);
    assert_int_equal(judge((struct nk_range_ask){.if_match = "\"v0\" , \"v1\""}), 200);
    assert_int_equal(judge((struct nk_range_ask){.if_match = "v1"}), 412);
    assert_int_equal(judge((struct nk_range_ask){.if_unmodified_since = before}), 412);
    assert_int_equal(judge((struct nk_range_ask){.if_unmodified_since = then}), 200);
    assert_int_equal(
        judge((struct nk_range_ask){.if_match = "\"v1\"", .if_unmodified_since = before}), 200);
    assert_int_equal(judge((struct nk_range_ask){.if_none_match = "W/\"v1\""}), 304);
    assert_int_equal(judge((struct nk_range_ask){.if_none_match = "\"v\", *"}), 304);
    assert_int_equal(judge((struct nk_range_ask){.if_modified_since = then}), 304);
    assert_int_equal(
        judge((struct nk_range_ask){.if_none_match = "\"v0\"", .if_modified_since = then}), 200);
    assert_int_equal(judge((struct nk_range_ask){.range = "bytes=0-1"}), 206);
    assert_int_equal(judge((struct nk_range_ask){.range = "bytes=2000-"}), 416);
    assert_int_equal(judge((struct nk_range_ask){.range = "bytes=2000-", .if_range = "\"v0\""}),
                     200);
    assert_int_equal(judge((struct nk_range_ask){.range = "bytes=0-1", .if_range = then}), 206);
    assert_int_equal(judge((struct nk_range_ask){.range = "bytes=0-1", .if_range = before}), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_is_a_part_or_the_whole_or_beyond),
        cmocka_unit_test(nothing_of_an_empty_file_can_be_asked_for),
        cmocka_unit_test(dates_are_read_in_their_three_forms),
        cmocka_unit_test(conditions_come_in_their_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
