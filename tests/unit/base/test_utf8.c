#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/utf8.h"

/* The definition, spelled the slow way: decode, and see whether encoding gives the same bytes. */
static size_t reference_char(const uint8_t *p, size_t len)
{
    uint32_t c;
    size_t n = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};

    if (n == 0 || n > len)
        return 0;
    c = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    return c >= least[n] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff) ? n : 0;
}

static void every_pair_and_many_quads_agree_with_the_definition(void **state)
{
    static const uint8_t edges[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0,
                                    0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec,
                                    0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf4, 0xf5, 0xff};
    const size_t n = sizeof edges;

    (void)state;
    for (size_t i = 0; i < n * n * n * n; i++) {
        uint8_t p[4] = {edges[i % n], edges[i / n % n], edges[i / n / n % n], edges[i / n / n / n]};
        size_t want = 0, step;

        while (want < 4 && (step = reference_char(p + want, 4 - want)) > 0)
            want += step;
        if (nk_utf8_valid_prefix(p, 4) != want || nk_utf8_valid(p, 4) != (want == 4))
            fail_msg("%02x %02x %02x %02x", p[0], p[1], p[2], p[3]);
    }
}

static void a_bad_byte_is_found_wherever_it_stands(void **state)
{
    uint8_t text[100];

    (void)state;
    for (size_t len = 1; len <= sizeof text; len++) {
        memset(text, 'a', sizeof text);
        assert_true(nk_utf8_valid(text, len));
        for (size_t at = 0; at < len; at++) {
            text[at] = 0xff;
            assert_int_equal(nk_utf8_valid_prefix(text, len), at);
            text[at] = 'a';
        }
    }
    assert_true(nk_utf8_valid("", 0));
    assert_true(nk_utf8_valid(NULL, 0));
}

static void a_tail_that_could_be_completed_is_counted(void **state)
{
    static const struct {
        const char *text;
        size_t tail;
    } want[] = {
        {"", 0},
        {"a", 0},
        {"a\xc3", 1},
        {"\xc3\xa4", 0},
        {"\xe2\x82", 2},
        {"x\xe2", 1},
        {"\xe2\x82\xac", 0},
        {"\xf0\x9f\x98", 3},
        {"\xf0\x9f", 2},
        {"\xf0", 1},
        {"\xf0\x9f\x98\x80", 0},
        {"\xff", 0},
        {"\x80", 0},
        {"\xc0", 0},
        {"\xe0\x80", 0},
        {"\xed\xa0", 0},
        {"\xf4\x90", 0},
        {"\xf5", 0},
        {"\x80\x80\x80", 0},
        {"\xe2\x82\xac\xe2\x82", 2},
        {"\xc3\xa4\xa4", 0},
    };

    (void)state;
    for (size_t i = 0; i < NK_COUNT(want); i++)
        assert_int_equal(nk_utf8_partial_tail(want[i].text, strlen(want[i].text)), want[i].tail);
}

static void invalid_parts_are_replaced_as_unicode_says(void **state)
{
    static const struct {
        const char *text, *want;
        bool repaired;
    } cases[] = {
        {"", "", false},
        {"plain", "plain", false},
        {"\xc3\xa4", "\xc3\xa4", false},
        {"a\xff"
         "b",
         "a\xef\xbf\xbd"
         "b",
         true},
        {"\xe2\x82", "\xef\xbf\xbd", true},
        {"\xe2\x82"
         "A",
         "\xef\xbf\xbd"
         "A",
         true},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", true},
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd", true},
        /* The example of the standard, table 3-11. */
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf"
         "A",
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
         "A",
         true},
    };

    (void)state;
    for (size_t i = 0; i < NK_COUNT(cases); i++) {
        struct nk_buf out = {0};

        assert_int_equal(nk_utf8_repair(&out, cases[i].text, strlen(cases[i].text)),
                         cases[i].repaired);
        nk_buf_add_char(&out, '\0');
        assert_string_equal((const char *)nk_buf_front(&out), cases[i].want);
        nk_buf_fini(&out);
    }
}

static void an_invalid_sequence_has_a_length(void **state)
{
    (void)state;
    assert_int_equal(nk_utf8_invalid_len("a", 1), 0);
    assert_int_equal(nk_utf8_invalid_len("", 0), 0);
    assert_int_equal(nk_utf8_invalid_len("\x80", 1), 1);
    assert_int_equal(nk_utf8_invalid_len("\xf0\x9f\x98x", 4), 3);
    assert_int_equal(nk_utf8_invalid_len("\xf0\x8f\x98x", 4), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_and_many_quads_agree_with_the_definition),
        cmocka_unit_test(a_bad_byte_is_found_wherever_it_stands),
        cmocka_unit_test(a_tail_that_could_be_completed_is_counted),
        cmocka_unit_test(invalid_parts_are_replaced_as_unicode_says),
        cmocka_unit_test(an_invalid_sequence_has_a_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
