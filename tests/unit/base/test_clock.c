#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/attr.h"
#include "base/clock.h"

static void instants_are_written_as_rfc_3339(void **state)
{
    static const struct {
        int64_t ms;
        const char *text, *http;
    } want[] = {
        {0, "1970-01-01T00:00:00.000Z", "Thu, 01 Jan 1970 00:00:00 GMT"},
        {784111777000, "1994-11-06T08:49:37.000Z", "Sun, 06 Nov 1994 08:49:37 GMT"},
        {951782399999, "2000-02-28T23:59:59.999Z", "Mon, 28 Feb 2000 23:59:59 GMT"},
        {951782400000, "2000-02-29T00:00:00.000Z", "Tue, 29 Feb 2000 00:00:00 GMT"},
        {1795967055123, "2026-11-29T15:44:15.123Z", "Sun, 29 Nov 2026 15:44:15 GMT"},
        {4107542400000, "2100-03-01T00:00:00.000Z", "Mon, 01 Mar 2100 00:00:00 GMT"},
        {-1, "1969-12-31T23:59:59.999Z", "Wed, 31 Dec 1969 23:59:59 GMT"},
        {INT64_MAX, "9999-12-31T23:59:59.999Z", "Fri, 31 Dec 9999 23:59:59 GMT"},
        {INT64_MIN, "0001-01-01T00:00:00.000Z", "Mon, 01 Jan 0001 00:00:00 GMT"},
    };

    (void)state;
    for (size_t i = 0; i < NK_COUNT(want); i++) {
        char text[NK_CLOCK_TEXT], http[30];

        nk_clock_format(want[i].ms, text);
        assert_string_equal(text, want[i].text);
        nk_clock_format_http(want[i].ms, http);
        assert_string_equal(http, want[i].http);
    }
}

static void a_fake_clock_stands_still(void **state)
{
    (void)state;
    nk_clock_fake(1234, 5678);
    assert_true(nk_clock_mono_ms() == 1234);
    assert_true(nk_clock_mono_ns() == 1234000000);
    assert_true(nk_clock_boot_ms() == 1234);
    assert_true(nk_clock_wall_ms() == 5678);
    nk_clock_real();
    assert_true(nk_clock_wall_ms() > INT64_C(1500000000000));
}

static void the_monotonic_clock_does_not_go_back(void **state)
{
    uint64_t before = nk_clock_mono_ns();

    (void)state;
    assert_true(nk_clock_mono_ns() >= before);
    assert_true(nk_clock_mono_ms() >= before / 1000000);
    assert_true(nk_clock_boot_ms() + 1 >= before / 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instants_are_written_as_rfc_3339),
        cmocka_unit_test(a_fake_clock_stands_still),
        cmocka_unit_test(the_monotonic_clock_does_not_go_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
