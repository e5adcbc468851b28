#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/err.h"
#include "base/utf8.h"

static void an_error_has_its_code_and_sentence(void **state)
{
    struct nk_err err;

    (void)state;
    memset(&err, 0xff, sizeof err);
    assert_int_equal(nk_fail(&err, NK_NOT_FOUND, "no process %s", "abc"), -1);
    assert_int_equal(err.code, NK_NOT_FOUND);
    assert_int_equal(err.sys, 0);
    assert_null(err.stage);
    assert_true(err.value == 0);
    assert_string_equal(err.msg, "no process abc");
}

static void an_errno_chooses_the_code(void **state)
{
    static const struct {
        int sys;
        enum nk_code code;
    } want[] = {
        {ENOENT, NK_NOT_FOUND},     {EACCES, NK_FORBIDDEN},      {EPERM, NK_FORBIDDEN},
        {EROFS, NK_FORBIDDEN},      {ENOSPC, NK_NO_SPACE},       {EDQUOT, NK_QUOTA_EXCEEDED},
        {ENOMEM, NK_OVERLOADED},    {EMFILE, NK_OVERLOADED},     {ENFILE, NK_OVERLOADED},
        {EAGAIN, NK_OVERLOADED},    {EEXIST, NK_EXISTS},         {ENOTEMPTY, NK_NOT_EMPTY},
        {ELOOP, NK_BAD_PATH},       {ENAMETOOLONG, NK_BAD_PATH}, {ENOTDIR, NK_BAD_PATH},
        {ENOSYS, NK_NOT_SUPPORTED}, {EIO, NK_INTERNAL},          {EOPNOTSUPP, NK_NOT_SUPPORTED},
        {12345, NK_INTERNAL},
    };

    (void)state;
    for (size_t i = 0; i < NK_COUNT(want); i++) {
        struct nk_err err;

        assert_int_equal(nk_fail_sys(&err, want[i].sys, "x"), -1);
        assert_int_equal(err.code, want[i].code);
        assert_int_equal(err.sys, want[i].sys);
    }
}

static void the_reason_follows_even_a_long_sentence(void **state)
{
    struct nk_err err;
    char name[400];

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(nk_fail_sys(&err, ENOENT, "cannot open %s", name), -1);
    assert_non_null(strstr(err.msg, "nnn: No such file or directory"));
}

static void nobody_needs_to_listen(void **state)
{
    (void)state;
    assert_int_equal(nk_fail(NULL, NK_BUSY, "x"), -1);
    assert_int_equal(nk_fail_sys(NULL, EIO, "x"), -1);
}

static void a_sentence_is_always_utf8(void **state)
{
    struct nk_err err;
    char name[300];

    (void)state;
    (void)nk_fail(&err, NK_BAD_PATH, "bad \xff\xc3 name");
    assert_string_equal(err.msg, "bad ?? name");
    for (size_t i = 0; i + 1 < sizeof name; i++)
        name[i] = i % 2 ? '\xa4' : '\xc3';
    name[sizeof name - 1] = '\0';
    for (size_t cut = 0; cut < 2; cut++) {
        (void)nk_fail(&err, NK_BAD_PATH, "%s", name + cut);
        assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
        assert_true(nk_utf8_valid(err.msg, strlen(err.msg)));
    }
}

static void errno_names_are_not_made_up(void **state)
{
    (void)state;
    assert_string_equal(nk_err_errno_name(ENOENT), "ENOENT");
    assert_string_equal(nk_err_errno_name(EAGAIN), "EAGAIN");
    assert_string_equal(nk_err_errno_name(E2BIG), "E2BIG");
    assert_string_equal(nk_err_errno_name(0), "EUNKNOWN");
    assert_string_equal(nk_err_errno_name(98765), "EUNKNOWN");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_has_its_code_and_sentence),
        cmocka_unit_test(an_errno_chooses_the_code),
        cmocka_unit_test(the_reason_follows_even_a_long_sentence),
        cmocka_unit_test(nobody_needs_to_listen),
        cmocka_unit_test(a_sentence_is_always_utf8),
        cmocka_unit_test(errno_names_are_not_made_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
