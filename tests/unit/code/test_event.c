/* Unit tests of code/event.c. */
#include "code/event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_text(const char *text, struct nk_event *out)
{
    struct nk_err err = {0};
    int rc = nk_event_read(text, strlen(text), out, &err);

    assert_true(rc == 0 || err.code != NK_OK);
    return rc;
}

static void what_an_interpreter_says_is_read(void **state)
{
    struct nk_event e;

    (void)state;
    assert_int_equal(read_text("{\"event\":\"ready\"}", &e), 0);
    assert_int_equal(e.kind, NK_EVENT_READY);
    nk_event_fini(&e);
    assert_int_equal(read_text("{\"event\":\"display\",\"data\":{\"text/plain\":\"1\"}}", &e), 0);
    assert_int_equal(e.kind, NK_EVENT_DISPLAY);
    assert_string_equal(nk_json_key(nk_json_first(e.data)), "text/plain");
    nk_event_fini(&e);
    assert_int_equal(read_text("{\"event\":\"done\",\"run\":7,\"status\":130,\"result\":null,"
                               "\"error\":{\"name\":\"E\",\"value\":\"v\",\"traceback\":\"t\"}}",
                               &e),
                     0);
    assert_int_equal(e.kind, NK_EVENT_DONE);
    assert_int_equal(e.run, 7);
    assert_int_equal(e.status, 130);
    assert_null(e.data);
    assert_string_equal(nk_json_str(nk_json_get(e.error, "name")), "E");
    nk_event_fini(&e);
}

static void anything_else_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "1",
        "[]",
        "{}",
        "{\"event\":1}",
        "{\"event\":\"other\"}",
        "{\"event\":\"display\"}",
        "{\"event\":\"display\",\"data\":null}",
        "{\"event\":\"display\",\"data\":{\"plain\":1}}",
        "{\"event\":\"display\",\"data\":{\"a b/c\":1}}",
        "{\"event\":\"done\",\"run\":-1}",
        "{\"event\":\"done\",\"status\":256}",
        "{\"event\":\"done\",\"result\":[]}",
        "{\"event\":\"done\",\"error\":\"x\"}",
        "{\"event\":\"done\",\"error\":{\"name\":\"a\",\"value\":\"b\"}}",
        "{\"event\":\"ready\"} x",
        "{\"event\":\"ready\",\"event\":\"ready\"}",
    };
    struct nk_event e;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(read_text(bad[i], &e), -1);
}

static void too_many_forms_and_too_long_errors_are_refused(void **state)
{
    char *text = malloc(NK_EVENT_ERROR_MAX + 200);
    struct nk_event e;
    size_t at;

    (void)state;
    assert_non_null(text);
    strcpy(text, "{\"event\":\"display\",\"data\":{\"a/0\":0");
    for (unsigned i = 1; i <= NK_EVENT_MIMES; i++)
        snprintf(text + strlen(text), 20, ",\"a/%u\":0", i);
    strcat(text, "}}");
    assert_int_equal(read_text(text, &e), -1);
    strcpy(text, "{\"event\":\"done\",\"error\":{\"name\":\"\",\"value\":\"\",\"traceback\":\"");
    at = strlen(text);
    memset(text + at, 'x', NK_EVENT_ERROR_MAX + 1);
    strcpy(text + at + NK_EVENT_ERROR_MAX + 1, "\"}}");
    assert_int_equal(read_text(text, &e), -1);
    strcpy(text + at + NK_EVENT_ERROR_MAX, "\"}}");
    assert_int_equal(read_text(text, &e), 0);
    nk_event_fini(&e);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_interpreter_says_is_read),
        cmocka_unit_test(anything_else_is_refused),
        cmocka_unit_test(too_many_forms_and_too_long_errors_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
