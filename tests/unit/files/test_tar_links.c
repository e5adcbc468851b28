#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "files/tar_links.h"

static struct stat file(uint64_t dev, uint64_t ino)
{
    return (struct stat){.st_dev = dev, .st_ino = ino};
}

static void the_first_name_stands_for_a_file(void **state)
{
    struct nk_tar_links l = {0};
    struct stat a = file(1, 7), b = file(2, 7);

    (void)state;
    assert_null(nk_tar_links_seen(&l, &a, "first"));
    assert_string_equal(nk_tar_links_seen(&l, &a, "second"), "first");
    assert_null(nk_tar_links_seen(&l, &b, "other"));
    assert_string_equal(nk_tar_links_seen(&l, &b, "third"), "other");
    assert_string_equal(nk_tar_links_seen(&l, &a, "fourth"), "first");
    nk_tar_links_fini(&l);
}

static void many_files_are_remembered_and_then_no_more(void **state)
{
    struct nk_tar_links l = {0};
    char name[4000];

    (void)state;
    for (uint64_t i = 0; i < 10000; i++) {
        struct stat st = file(i % 3, i / 3);

        (void)snprintf(name, sizeof name, "%0*d", (int)sizeof name - 1, (int)i);
        assert_null(nk_tar_links_seen(&l, &st, name));
    }
    assert_true(nk_buf_left(&l.names) <= NK_TAR_LINKS_BYTES);
    for (uint64_t i = 0; i < 8000; i++) {
        struct stat st = file(i % 3, i / 3);

        (void)snprintf(name, sizeof name, "%0*d", (int)sizeof name - 1, (int)i);
        assert_string_equal(nk_tar_links_seen(&l, &st, "again"), name);
    }
    nk_tar_links_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_name_stands_for_a_file),
        cmocka_unit_test(many_files_are_remembered_and_then_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
