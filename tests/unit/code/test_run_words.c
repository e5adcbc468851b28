#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "code/run_words.h"

static const struct nk_run_words words = {.tool = "/bin/tool",
                                          .needs = "/bin/needs",
                                          .file = "/tmp/d/f",
                                          .dir = "/tmp/d",
                                          .cwd = "/workspace",
                                          .cache = "/cache"};

static void assert_list(const char *const *list, const char *const *want)
{
    assert_non_null(list);
    for (; *want; want++, list++)
        assert_string_equal(*list, *want);
    assert_null(*list);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void words_stand_for_what_they_name(void **state)
{
    const struct nk_runtime_way way = {
        .argv = LIST("{tool}", "--in={dir}/x:{cwd}", "{file}", "{needs}{cache}", "{", "{x}", "a{")};
    struct nk_arena arena = {0};

    (void)state;
    assert_list(nk_run_words_argv(&way, &words, NULL, &arena),
                LIST("/bin/tool", "--in=/tmp/d/x:/workspace", "/tmp/d/f", "/bin/needs/cache", "{",
                     "{x}", "a{"));
    nk_arena_fini(&arena);
}

static void arguments_come_last_or_where_they_belong(void **state)
{
    const struct nk_runtime_way last = {.argv = LIST("{tool}")};
    const struct nk_runtime_way placed = {.argv = LIST("{tool}", "{args}", "end")};
    struct nk_arena arena = {0};

    (void)state;
    assert_list(nk_run_words_argv(&last, &words, LIST("{tool}", ""), &arena),
                LIST("/bin/tool", "{tool}", ""));
    assert_list(nk_run_words_argv(&placed, &words, LIST("a", "b"), &arena),
                LIST("/bin/tool", "a", "b", "end"));
    assert_list(nk_run_words_argv(&placed, &words, NULL, &arena), LIST("/bin/tool", "end"));
    nk_arena_fini(&arena);
}

static void variables_are_defaults_but_those_that_go_in_front(void **state)
{
    const struct nk_runtime_env env[] = {{"A", "1", false},    {"B", "{cwd}", false},
                                         {"P", "{cwd}", true}, {"Q", "{dir}", true},
                                         {"E", "x", true},     {0}};
    const struct nk_runtime_way way = {.argv = LIST("x"), .env = env};
    struct nk_arena arena = {0};

    (void)state;
    assert_list(nk_run_words_env(&way, &words, LIST("AA=0", "A=mine", "P=/p", "E="), &arena),
                LIST("AA=0", "A=mine", "P=/workspace:/p", "E=x", "B=/workspace", "Q=/tmp/d"));
    nk_arena_fini(&arena);
}

static void what_a_way_uses_is_known(void **state)
{
    const struct nk_runtime_env env[] = {{"A", "{cache}/x", false}, {0}};
    const struct nk_runtime_way way = {.argv = LIST("{tool}"), .env = env};

    (void)state;
    assert_true(nk_run_words_uses(&way, "{cache}"));
    assert_true(nk_run_words_uses(&way, "{tool}"));
    assert_false(nk_run_words_uses(&way, "{dir}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_stand_for_what_they_name),
        cmocka_unit_test(arguments_come_last_or_where_they_belong),
        cmocka_unit_test(variables_are_defaults_but_those_that_go_in_front),
        cmocka_unit_test(what_a_way_uses_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
