#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "cli/args.h"

static bool input, tty;
static const char *cwd, *since;
static struct nk_args_list env;
static struct nk_args args;
static struct nk_err err;

/* Reads a line of words, of a verb that runs a command or of another. */
static int read_words(bool command, char *line)
{
    static char *argv[16];
    const struct nk_args_opt opts[] = {
        {"--interactive", 'i', NK_ARGS_FLAG, &input},
        {"--tty", 't', NK_ARGS_FLAG, &tty},
        {"--cwd", 0, NK_ARGS_TEXT, &cwd},
        {"--since", 's', NK_ARGS_TEXT, &since},
        {"--env", 0, NK_ARGS_LIST, &env},
    };
    size_t n = 0;

    nk_args_list_fini(&env);
    input = tty = false;
    cwd = since = NULL;
    for (char *save = NULL, *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[n++] = w;
    argv[n] = NULL;
    args = (struct nk_args){.opts = opts, .count = NK_COUNT(opts), .command = command};
    return nk_args_read(&args, argv, &err);
}

static void expect_operands(const char *first, const char *second, size_t count)
{
    assert_int_equal(args.operand_count, count);
    assert_string_equal(args.operand[0], first);
    assert_string_equal(args.operand[1], second);
    assert_null(args.operand[count]);
}

static void values_come_behind_or_with_the_option(void **state)
{
    char line[] = "--cwd /a --env A=1 --env=B=2 -s7 x y";
    char other[] = "--cwd=/b -s 8 x y";

    (void)state;
    assert_int_equal(read_words(false, line), 0);
    assert_string_equal(cwd, "/a");
    assert_string_equal(since, "7");
    assert_int_equal(env.count, 2);
    assert_string_equal(env.item[1], "B=2");
    expect_operands("x", "y", 2);
    assert_int_equal(read_words(false, other), 0);
    assert_string_equal(cwd, "/b");
    assert_string_equal(since, "8");
}

static void letters_may_be_joined(void **state)
{
    char line[] = "-it x y";

    (void)state;
    assert_int_equal(read_words(true, line), 0);
    assert_true(input && tty);
    expect_operands("x", "y", 2);
}

static void the_options_of_a_command_are_its_own(void **state)
{
    char line[] = "-i ls --tty";
    char dashed[] = "-- -x --help";

    (void)state;
    assert_int_equal(read_words(true, line), 0);
    assert_false(tty);
    expect_operands("ls", "--tty", 2);
    assert_int_equal(read_words(true, dashed), 0);
    expect_operands("-x", "--help", 2);
}

static void elsewhere_options_may_follow_operands(void **state)
{
    char line[] = "GET --cwd /a - -t";

    (void)state;
    assert_int_equal(read_words(false, line), 0);
    assert_true(tty);
    assert_string_equal(cwd, "/a");
    expect_operands("GET", "-", 2);
}

static void help_is_told_apart(void **state)
{
    char line[] = "-i --help", letter[] = "-ih";

    (void)state;
    assert_int_equal(read_words(true, line), 1);
    assert_int_equal(read_words(true, letter), 1);
}

static void a_wrong_option_is_named(void **state)
{
    char unknown[] = "--wrong", letter[] = "-iz", missing[] = "--cwd", flag[] = "--tty=yes";

    (void)state;
    assert_int_equal(read_words(false, unknown), -1);
    assert_non_null(strstr(err.msg, "--wrong"));
    assert_int_equal(read_words(false, letter), -1);
    assert_non_null(strstr(err.msg, "-iz"));
    assert_int_equal(read_words(false, missing), -1);
    assert_non_null(strstr(err.msg, "--cwd"));
    assert_int_equal(read_words(false, flag), -1);
    assert_non_null(strstr(err.msg, "--tty"));
}

static int clean_up(void **state)
{
    (void)state;
    nk_args_list_fini(&env);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_behind_or_with_the_option),
        cmocka_unit_test(letters_may_be_joined),
        cmocka_unit_test(the_options_of_a_command_are_its_own),
        cmocka_unit_test(elsewhere_options_may_follow_operands),
        cmocka_unit_test(help_is_told_apart),
        cmocka_unit_test(a_wrong_option_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, clean_up);
}
