/* Every error of the protocol has a status, a name, and the fields that belong to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/problem.h"
#include "fake_req.h"

static struct nk_req answer(const struct nk_err *err)
{
    struct nk_req req = {0};

    nk_problem_reply(&req, err);
    return req;
}

static void every_code_has_a_status_and_a_name_of_its_own(void **state)
{
    (void)state;
    for (int code = NK_BAD_REQUEST; code < NK_CODE_COUNT; code++) {
        int status = nk_problem_status((enum nk_code)code);

        assert_true(status >= 400 && status < 600);
        assert_non_null(nk_problem_name((enum nk_code)code));
        for (int other = NK_BAD_REQUEST; other < code; other++)
            assert_string_not_equal(nk_problem_name((enum nk_code)code),
                                    nk_problem_name((enum nk_code)other));
    }
}

static void an_error_without_a_code_is_internal(void **state)
{
    (void)state;
    assert_int_equal(nk_problem_status(NK_OK), 500);
    assert_int_equal(nk_problem_status((enum nk_code)9999), 500);
    assert_string_equal(nk_problem_name((enum nk_code)9999), "internal");
}

static void the_body_is_code_and_message(void **state)
{
    struct nk_err err;
    struct nk_req req;

    (void)state;
    (void)nk_fail(&err, NK_NOT_FOUND, "no process \"x\"");
    req = answer(&err);
    assert_int_equal(req.status, 404);
    assert_string_equal(
        req.body, "{\"error\":{\"code\":\"not_found\",\"message\":\"no process \\\"x\\\"\"}}");
}

static void a_failed_start_tells_errno_and_stage(void **state)
{
    struct nk_err err;
    struct nk_req req;

    (void)state;
    (void)nk_fail(&err, NK_EXEC_FAILED, "no such program");
    err.sys = 2;
    err.stage = "exec";
    req = answer(&err);
    assert_int_equal(req.status, 400);
    assert_string_equal(req.body, "{\"error\":{\"code\":\"exec_failed\",\"message\":\"no such "
                                  "program\",\"errno\":\"ENOENT\",\"stage\":\"exec\"}}");
}

static void gone_tells_where_the_log_begins(void **state)
{
    struct nk_err err;
    struct nk_req req;

    (void)state;
    (void)nk_fail(&err, NK_GONE, "old");
    err.value = 4096;
    req = answer(&err);
    assert_int_equal(req.status, 410);
    assert_non_null(strstr(req.body, "\"log_start\":4096"));
}

static void busy_says_when_to_come_again(void **state)
{
    struct nk_err err;
    struct nk_req req;

    (void)state;
    (void)nk_fail(&err, NK_BUSY, "all slots are taken");
    req = answer(&err);
    assert_int_equal(req.status, 409);
    assert_string_equal(fake_req_sent(&req, "Retry-After"), "1");
}

static void a_wrong_method_lists_the_right_ones(void **state)
{
    struct nk_err err;
    struct nk_req req;

    (void)state;
    (void)nk_fail(&err, NK_METHOD_NOT_ALLOWED, "POST is not for this path");
    err.value = 1u << NK_GET | 1u << NK_HEAD | 1u << NK_DELETE;
    req = answer(&err);
    assert_int_equal(req.status, 405);
    assert_string_equal(fake_req_sent(&req, "Allow"), "GET, HEAD, DELETE");
}

static void a_refused_token_names_the_scheme(void **state)
{
    struct nk_err err;
    struct nk_req req;

    (void)state;
    (void)nk_fail(&err, NK_UNAUTHORIZED, "no");
    req = answer(&err);
    assert_int_equal(req.status, 401);
    assert_string_equal(fake_req_sent(&req, "WWW-Authenticate"), "Bearer");
}

static void bytes_that_are_no_text_are_repaired_in_messages(void **state)
{
    struct nk_err err;
    struct nk_req req;

    (void)state;
    (void)nk_fail(&err, NK_BAD_PATH, "%s", "");
    (void)snprintf(err.msg, sizeof err.msg, "no \xff here \xe2\x82");
    req = answer(&err);
    assert_non_null(strstr(req.body, "\"no \xef\xbf\xbd here \xef\xbf\xbd\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_status_and_a_name_of_its_own),
        cmocka_unit_test(an_error_without_a_code_is_internal),
        cmocka_unit_test(the_body_is_code_and_message),
        cmocka_unit_test(a_failed_start_tells_errno_and_stage),
        cmocka_unit_test(gone_tells_where_the_log_begins),
        cmocka_unit_test(busy_says_when_to_come_again),
        cmocka_unit_test(a_wrong_method_lists_the_right_ones),
        cmocka_unit_test(a_refused_token_names_the_scheme),
        cmocka_unit_test(bytes_that_are_no_text_are_repaired_in_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
