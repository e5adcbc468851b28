#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/attr.h"
#include "files/tar_name.h"

static void assert_clean(const char *name, const char *want)
{
    char out[NK_TAR_NAME_MAX + 1];

    assert_null(nk_tar_name_clean(name, out));
    assert_string_equal(out, want);
}

static void assert_refused(const char *name)
{
    char out[NK_TAR_NAME_MAX + 1];

    assert_non_null(nk_tar_name_clean(name, out));
}

static void dots_and_slashes_that_say_nothing_go(void **state)
{
    (void)state;
    assert_clean("a", "a");
    assert_clean("./a//b/./c/", "a/b/c");
    assert_clean("./", "");
    assert_clean(".", "");
    assert_clean("..a/b..", "..a/b..");
    assert_clean("...", "...");
    assert_clean("a\\..\\b", "a\\..\\b");
    assert_clean("\xff\n\x1b", "\xff\n\x1b");
}

static void what_leads_elsewhere_is_refused(void **state)
{
    static const char *const bad[] = {"",     "/",    "/a",     "//a",  "..",
                                      "../a", "a/..", "a/../b", "./..", "a//..//b"};

    (void)state;
    for (size_t i = 0; i < NK_COUNT(bad); i++)
        assert_refused(bad[i]);
}

static void lengths_and_depth_are_bounded(void **state)
{
    char name[3 * NK_TAR_NAME_MAX];
    char out[NK_TAR_NAME_MAX + 1];

    (void)state;
    memset(name, 'a', sizeof name);
    name[NK_TAR_NAME_PART] = '\0';
    assert_null(nk_tar_name_clean(name, out));
    name[NK_TAR_NAME_PART] = 'a';
    name[NK_TAR_NAME_PART + 1] = '\0';
    assert_refused(name);
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = i % 200 == 199 ? '/' : 'a';
    name[sizeof name - 1] = '\0';
    assert_refused(name);
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = i % 2 ? '/' : 'a';
    name[2 * NK_TAR_NAME_DEPTH] = '\0';
    assert_null(nk_tar_name_clean(name, out));
    name[2 * NK_TAR_NAME_DEPTH] = 'a';
    name[2 * NK_TAR_NAME_DEPTH + 1] = '\0';
    assert_refused(name);
}

static void a_matter_of_one_entry_has_a_reason_and_others_have_none(void **state)
{
    (void)state;
    assert_non_null(nk_tar_name_reason(ELOOP));
    assert_non_null(nk_tar_name_reason(EACCES));
    assert_null(nk_tar_name_reason(ENOSPC));
    assert_null(nk_tar_name_reason(EDQUOT));
    assert_null(nk_tar_name_reason(ENOMEM));
    assert_null(nk_tar_name_reason(EIO));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dots_and_slashes_that_say_nothing_go),
        cmocka_unit_test(what_leads_elsewhere_is_refused),
        cmocka_unit_test(lengths_and_depth_are_bounded),
        cmocka_unit_test(a_matter_of_one_entry_has_a_reason_and_others_have_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
