#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "code/runtime_file.h"

static int read_text(const char *text, struct nk_arena *arena, struct nk_runtime *out,
                     struct nk_err *err)
{
    return nk_runtime_file_read("mine.json", text, strlen(text), arena, out, err);
}

static void a_full_description_is_read(void **state)
{
    struct nk_arena arena = {0};
    struct nk_runtime rt;
    struct nk_err err;

    (void)state;
    assert_int_equal(
        read_text("{\"id\":\"lua\",\"aliases\":[\"lua5.4\",\"c++\"],\"tool\":[\"lua\",\"lua5.4\"],"
                  "\"argv\":[\"{tool}\",\"{args}\",\"{a:1}\"],\"file\":\"main.lua\","
                  "\"needs\":\"sh\",\"env\":{\"LUA_PATH\":\"{cwd}/?.lua\"},\"version\":\"-v\"}",
                  &arena, &rt, &err),
        0);
    assert_string_equal(rt.id, "lua");
    assert_string_equal(rt.aliases[1], "c++");
    assert_null(rt.aliases[2]);
    assert_int_equal(rt.way_count, 1);
    assert_string_equal(rt.ways[0].tools[1], "lua5.4");
    assert_null(rt.ways[0].tools[2]);
    assert_string_equal(rt.ways[0].argv[1], "{args}");
    assert_string_equal(rt.ways[0].argv[2], "{a:1}"); /* a brace is not yet a word */
    assert_string_equal(rt.ways[0].file, "main.lua");
    assert_string_equal(rt.ways[0].needs, "sh");
    assert_string_equal(rt.ways[0].version, "-v");
    assert_string_equal(rt.ways[0].env[0].name, "LUA_PATH");
    assert_null(rt.ways[0].env[1].name);
    nk_arena_fini(&arena);
}

static void the_least_description_is_enough(void **state)
{
    struct nk_arena arena = {0};
    struct nk_runtime rt;

    (void)state;
    assert_int_equal(read_text("{\"id\":\"x\",\"tool\":\"x\",\"argv\":[\"x\"]}", &arena, &rt, NULL),
                     0);
    assert_null(rt.aliases[0]);
    assert_string_equal(rt.ways[0].file, "main-code");
    assert_null(rt.ways[0].version);
    nk_arena_fini(&arena);
}

static void what_is_wrong_is_named(void **state)
{
    static const char *const cases[][2] = {
        {"", "mine.json"},
        {"[]", "object"},
        {"{\"id\":\"x\",\"tool\":\"x\",\"argv\":[\"x\"],\"id\":\"y\"}", "id"},
        {"{\"tool\":\"x\",\"argv\":[\"x\"]}", "id is missing"},
        {"{\"id\":\"\",\"tool\":\"x\",\"argv\":[\"x\"]}", "id must"},
        {"{\"id\":\".x\",\"tool\":\"x\",\"argv\":[\"x\"]}", "id must"},
        {"{\"id\":\"x\",\"argv\":[\"x\"]}", "tool is missing"},
        {"{\"id\":\"x\",\"tool\":\"\",\"argv\":[\"x\"]}", "tool must"},
        {"{\"id\":\"x\",\"tool\":[\"a\",\"b\",\"c\",\"d\"],\"argv\":[\"x\"]}", "tool has more"},
        {"{\"id\":\"x\",\"tool\":\"x\"}", "argv is missing"},
        {"{\"id\":\"x\",\"tool\":\"x\",\"argv\":[]}", "argv is missing"},
        {"{\"id\":\"x\",\"tool\":\"x\",\"argv\":[1]}", "argv must"},
        {"{\"id\":\"x\",\"tool\":\"x\",\"argv\":[\"{other}\"]}", "{other}"},
        {"{\"id\":\"x\",\"tool\":\"x\",\"argv\":[\"x\"],\"file\":\"../x\"}", "file"},
        {"{\"id\":\"x\",\"tool\":\"x\",\"argv\":[\"x\"],\"env\":[]}", "env"},
        {"{\"id\":\"x\",\"tool\":\"x\",\"argv\":[\"x\"],\"env\":{\"A=B\":\"\"}}", "env.A=B"},
        {"{\"id\":\"x\",\"tool\":\"x\",\"argv\":[\"x\"],\"aliases\":[\"a b\"]}", "aliases"},
        {"{\"id\":\"x\",\"tool\":\"x\",\"argv\":[\"x\"],\"other\":1}", "other"},
    };
    struct nk_arena arena = {0};
    struct nk_runtime rt;
    struct nk_err err;

    (void)state;
    for (size_t i = 0; i < NK_COUNT(cases); i++) {
        assert_int_equal(read_text(cases[i][0], &arena, &rt, &err), -1);
        assert_non_null(strstr(err.msg, "mine.json"));
        assert_non_null(strstr(err.msg, cases[i][1]));
    }
    nk_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_description_is_read),
        cmocka_unit_test(the_least_description_is_enough),
        cmocka_unit_test(what_is_wrong_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
