#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "http/router.h"

static const struct nk_route rows[] = {
    {"GET", "/healthz", "health"},
    {"GET", "/v1/things/{id}", "thing"},
    {"DELETE", "/v1/things/{id}", "thingDelete"},
    {"GET", "/v1/things/special", "special"},
    {"POST", "/v1/things/{id}/kill", "kill"},
    {"GET", "/v1/proxy/{port}/{rest...}", "proxy"},
    {"HEAD", "/both", "head"},
    {"GET", "/both", "get"},
    {"GET", "/", "root"},
};

static int find(enum nk_method method, const char *path, struct nk_route_match *out,
                struct nk_err *err)
{
    *out = (struct nk_route_match){0};
    return nk_router_find(rows, NK_COUNT(rows), method, path, out, err);
}

static void assert_row(enum nk_method method, const char *path, const char *operation)
{
    struct nk_route_match m;

    assert_int_equal(find(method, path, &m, NULL), 0);
    assert_string_equal(m.route->operation, operation);
}

static void assert_no_row(const char *path)
{
    struct nk_route_match m;
    struct nk_err err = {0};

    assert_int_equal(find(NK_GET, path, &m, &err), -1);
    assert_int_equal(err.code, NK_NOT_FOUND);
    assert_null(m.route);
}

static void a_path_finds_the_row_of_its_method(void **state)
{
    (void)state;
    assert_row(NK_GET, "/healthz", "health");
    assert_row(NK_GET, "/v1/things/abc", "thing");
    assert_row(NK_DELETE, "/v1/things/abc", "thingDelete");
    assert_row(NK_POST, "/v1/things/abc/kill", "kill");
    assert_row(NK_GET, "/", "root");
}

static void a_literal_row_goes_before_a_parameter(void **state)
{
    (void)state;
    assert_row(NK_GET, "/v1/things/special", "special");
    assert_row(NK_DELETE, "/v1/things/special", "thingDelete");
}

static void head_finds_its_own_row_and_else_that_of_get(void **state)
{
    (void)state;
    assert_row(NK_HEAD, "/both", "head");
    assert_row(NK_GET, "/both", "get");
    assert_row(NK_HEAD, "/healthz", "health");
}

static void what_is_near_a_path_is_not_it(void **state)
{
    (void)state;
    assert_no_row("/healthz/");
    assert_no_row("//healthz");
    assert_no_row("/Healthz");
    assert_no_row("/health");
    assert_no_row("/healthzz");
    assert_no_row("/v1/things/");
    assert_no_row("/v1/things//kill");
    assert_no_row("/v1");
    assert_no_row("*");
    assert_no_row("");
}

static void parameters_are_the_segments_as_sent(void **state)
{
    struct nk_route_match m;

    (void)state;
    assert_int_equal(find(NK_GET, "/v1/things/a%2Fb", &m, NULL), 0);
    assert_int_equal(m.param_count, 1);
    assert_int_equal(m.params[0].name_len, 2);
    assert_memory_equal(m.params[0].name, "id", 2);
    assert_int_equal(m.params[0].len, 5);
    assert_memory_equal(m.params[0].text, "a%2Fb", 5);
}

static void the_rest_takes_slashes_and_nothing_too(void **state)
{
    struct nk_route_match m;

    (void)state;
    assert_int_equal(find(NK_GET, "/v1/proxy/80/a/b/", &m, NULL), 0);
    assert_int_equal(m.param_count, 2);
    assert_int_equal(m.params[1].name_len, 4);
    assert_memory_equal(m.params[1].name, "rest", 4);
    assert_int_equal(m.params[1].len, 4);
    assert_memory_equal(m.params[1].text, "a/b/", 4);
    assert_int_equal(find(NK_GET, "/v1/proxy/80/", &m, NULL), 0);
    assert_int_equal(m.params[1].len, 0);
    assert_no_row("/v1/proxy/80");
}

static void another_method_is_told_which_ones_there_are(void **state)
{
    struct nk_route_match m;
    struct nk_err err = {0};

    (void)state;
    assert_int_equal(find(NK_PUT, "/v1/things/abc", &m, &err), -1);
    assert_int_equal(err.code, NK_METHOD_NOT_ALLOWED);
    assert_int_equal(err.value, 1u << NK_GET | 1u << NK_HEAD | 1u << NK_DELETE);
    assert_int_equal(find(NK_METHOD_COUNT, "/v1/things/abc", &m, &err), -1);
    assert_int_equal(err.code, NK_METHOD_NOT_ALLOWED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_finds_the_row_of_its_method),
        cmocka_unit_test(a_literal_row_goes_before_a_parameter),
        cmocka_unit_test(head_finds_its_own_row_and_else_that_of_get),
        cmocka_unit_test(what_is_near_a_path_is_not_it),
        cmocka_unit_test(parameters_are_the_segments_as_sent),
        cmocka_unit_test(the_rest_takes_slashes_and_nothing_too),
        cmocka_unit_test(another_method_is_told_which_ones_there_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
