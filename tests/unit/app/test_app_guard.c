#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app_setup.h"

static char folder[64], file[96];

static int set_up(void **state)
{
    FILE *f;

    (void)state;
    memcpy(folder, "/tmp/nook-guard-XXXXXX", 23);
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(file, sizeof file, "%s/config", folder);
    f = fopen(file, "we");
    return f ? fclose(f) : -1;
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink(file);
    return rmdir(folder);
}

static int guard(const char *config, const char *profile)
{
    struct nk_config cfg = {.config_file = config, .seccomp = strdup(profile)};
    struct nk_err err = {0};
    int rc;

    assert_non_null(cfg.seccomp);
    rc = nk_app_setup_guard(&cfg, &err);
    free(cfg.seccomp);
    assert_int_equal(rc < 0, err.msg[0] != '\0');
    return rc;
}

/* The binary of this test must itself be safe, or nothing can be told. */
static void skip_where_the_binary_is_open(void)
{
    if (guard(NULL, "default") < 0)
        skip();
}

static void a_file_that_only_we_may_change_is_read(void **state)
{
    (void)state;
    skip_where_the_binary_is_open();
    assert_int_equal(guard(file, "default"), 0);
    assert_int_equal(guard(NULL, file), 0);
}

static void one_that_others_may_change_is_not(void **state)
{
    (void)state;
    skip_where_the_binary_is_open();
    assert_int_equal(chmod(file, 0646), 0);
    assert_int_equal(guard(file, "default"), -1);
    assert_int_equal(guard(NULL, file), -1);
}

static void nor_one_in_a_folder_that_others_may_change(void **state)
{
    (void)state;
    skip_where_the_binary_is_open();
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(guard(file, "off"), -1);
    if (geteuid() == 0) { /* root's own sticky folder is nobody else's to change */
        assert_int_equal(chmod(folder, 01777), 0);
        assert_int_equal(guard(file, "off"), 0);
        assert_int_equal(chown(folder, 12345, 0), 0);
        assert_int_equal(guard(file, "off"), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_that_only_we_may_change_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_others_may_change_is_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nor_one_in_a_folder_that_others_may_change, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
