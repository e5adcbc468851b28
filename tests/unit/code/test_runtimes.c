#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/attr.h"
#include "code/runtime_table.h"
#include "code/runtimes.h"

static void the_built_in_ones_have_their_names(void **state)
{
    static const char *const pairs[][2] = {
        {"python", "python"}, {"py", "python"},       {"python3", "python"},
        {"JS", "javascript"}, {"node", "javascript"}, {"nodejs", "javascript"},
        {"ts", "typescript"}, {"bash", "bash"},       {"sh", "sh"},
        {"php", "php"},       {"ruby", "ruby"},       {"Golang", "go"},
    };
    struct nk_runtimes *r = NULL;

    (void)state;
    assert_int_equal(nk_runtimes_load("/nonexistent", &r, NULL), 0);
    assert_int_equal(nk_runtimes_count(r), nk_runtime_table_count);
    for (size_t i = 0; i < NK_COUNT(pairs); i++)
        assert_string_equal(nk_runtimes_find(r, pairs[i][0])->id, pairs[i][1]);
    assert_null(nk_runtimes_find(r, "cobol"));
    assert_null(nk_runtimes_find(r, ""));
    nk_runtimes_free(r);
}

/* Tables are data: what would only show when that very language is run. */
static void every_way_of_the_table_is_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < nk_runtime_table_count; i++) {
        const struct nk_runtime *rt = &nk_runtime_table[i];

        assert_true(rt->way_count > 0);
        assert_int_equal(rt->mark != NULL, rt->opening != NULL);
        for (size_t k = 0; k < rt->way_count; k++) {
            const struct nk_runtime_way *way = &rt->ways[k];

            assert_non_null(way->tools[0]);
            assert_non_null(way->argv[0]);
            assert_null(strchr(way->file, '/'));
            assert_int_equal(way->helper != NULL, way->helper_text != NULL);
            assert_true(way->major == 0 || way->version);
        }
    }
}

static void a_version_is_compared_by_its_numbers(void **state)
{
    static const struct {
        const char *text;
        bool enough;
    } cases[] = {{"22.6.0", true}, {"22.6", true},    {"22.10.1", true}, {"23.0.0", true},
                 {"100.1", true},  {"22.5.9", false}, {"9.9", false},    {"22", false},
                 {"", false},      {"x", false}};
    const struct nk_runtime_way way = {.major = 22, .minor = 6};

    (void)state;
    for (size_t i = 0; i < NK_COUNT(cases); i++)
        assert_int_equal(nk_runtimes_is_enough(&way, cases[i].text), cases[i].enough);
}

static void what_is_missing_is_told_in_words(void **state)
{
    const struct nk_runtime_way ways[] = {{.tools = {"tsx"}, .needs = "node"},
                                          {.tools = {"node"}, .major = 22, .minor = 6}};
    const struct nk_runtime rt = {.id = "x", .ways = ways, .way_count = 2};
    char text[64], cut[8];

    (void)state;
    assert_string_equal(nk_runtimes_needs(&rt, text, sizeof text), "tsx with node or node 22.6");
    assert_string_equal(nk_runtimes_needs(&rt, cut, sizeof cut), "tsx wit");
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void remove_file(const char *dir, const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    (void)unlink(path);
}

static void a_folder_adds_replaces_and_must_not_contradict_itself(void **state)
{
    char dir[] = "/tmp/nook-runtimes-XXXXXX";
    struct nk_runtimes *r = NULL;
    struct nk_err err;

    (void)state;
    assert_non_null(mkdtemp(dir));
    write_file(dir, "a.json", "{\"id\":\"sh\",\"tool\":\"dash\",\"argv\":[\"{tool}\",\"{file}\"]}");
    write_file(dir, "b.json", "{\"id\":\"lua\",\"tool\":\"lua\",\"argv\":[\"{tool}\"]}");
    write_file(dir, "notes.txt", "not read");
    assert_int_equal(nk_runtimes_load(dir, &r, &err), 0);
    assert_int_equal(nk_runtimes_count(r), nk_runtime_table_count + 1);
    assert_string_equal(nk_runtimes_find(r, "sh")->ways[0].tools[0], "dash");
    assert_string_equal(nk_runtimes_find(r, "LUA")->id, "lua");
    nk_runtimes_free(r);
    write_file(dir, "c.json",
               "{\"id\":\"x\",\"aliases\":[\"lua\"],\"tool\":\"x\",\"argv\":[\"x\"]}");
    assert_int_equal(nk_runtimes_load(dir, &r, &err), -1);
    assert_non_null(strstr(err.msg, "lua"));
    remove_file(dir, "a.json");
    remove_file(dir, "b.json");
    remove_file(dir, "c.json");
    remove_file(dir, "notes.txt");
    (void)rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_built_in_ones_have_their_names),
        cmocka_unit_test(every_way_of_the_table_is_complete),
        cmocka_unit_test(a_version_is_compared_by_its_numbers),
        cmocka_unit_test(what_is_missing_is_told_in_words),
        cmocka_unit_test(a_folder_adds_replaces_and_must_not_contradict_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
