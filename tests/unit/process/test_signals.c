#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>

#include "process/signals.h"

static void names_and_numbers_go_both_ways(void **state)
{
    (void)state;
    for (int signo = 1; signo <= 64; signo++) {
        if (nk_signals_name(signo))
            assert_int_equal(nk_signals_number(nk_signals_name(signo)), signo);
    }
    for (int signo = 1; signo <= 31; signo++)
        assert_non_null(nk_signals_name(signo));
    assert_string_equal(nk_signals_name(SIGTERM), "TERM");
}

static void a_signal_may_be_written_in_three_ways(void **state)
{
    (void)state;
    assert_int_equal(nk_signals_number("TERM"), SIGTERM);
    assert_int_equal(nk_signals_number("SIGTERM"), SIGTERM);
    assert_int_equal(nk_signals_number("sigint"), SIGINT);
    assert_int_equal(nk_signals_number("15"), 15);
    assert_int_equal(nk_signals_number("64"), 64);
    assert_int_equal(nk_signals_number("RTMIN+3"), 37);
}

static void anything_else_is_unknown(void **state)
{
    static const char *const unknown[] = {"",    "0",   "-1", "65",         "33",    "100", "1x",
                                          " 15", "SIG", "+9", "SIGSIGTERM", "TERM ", "NOPE"};

    (void)state;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_int_equal(nk_signals_number(unknown[i]), -1);
    assert_null(nk_signals_name(0));
    assert_null(nk_signals_name(-1));
    assert_null(nk_signals_name(65));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_numbers_go_both_ways),
        cmocka_unit_test(a_signal_may_be_written_in_three_ways),
        cmocka_unit_test(anything_else_is_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
