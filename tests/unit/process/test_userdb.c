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

#include "process/userdb.h"

static char root[] = "/tmp/nk-userdb-XXXXXX";

static void write_file(const char *name, const char *text, size_t len)
{
    char path[128];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/etc/%s", root, name);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
                             "# comment\n"
                             "+@nis:::::\n"
                             "short:x:5\n"
                             "\n"
                             "bad:x:12a:5::/:/bin/sh\n"
                             "huge:x:4294967295:5::/:/bin/sh\n"
                             "sandbox:x:1000:1001:Sand:Box:/home/too:many\n"
                             "sandbox:x:1000:1001:Sand,,,:/home/sandbox:/bin/zsh\n"
                             "bare:x:1002:1002:::\n"
                             "last:x:1003:1003::/home/last:/bin/sh";

static const char group[] = "root:x:0:\n"
                            "sandbox:x:1001:sandbox\n"
                            "tools:x:2000:other,sandbox\n"
                            "sandboxes:x:2001:sandbox2,xsandbox\n"
                            "again:x:2000:sandbox\n"
                            "last:x:2002:sandbox";

static int make_root(void **state)
{
    char dir[64];

    (void)state;
    assert_non_null(mkdtemp(root));
    (void)snprintf(dir, sizeof dir, "%s/etc", root);
    assert_int_equal(mkdir(dir, 0700), 0);
    return 0;
}

static int remove_root(void **state)
{
    static const char *const names[] = {"etc/passwd", "etc/group", "etc", ""};
    char path[128];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", root, names[i]);
        (void)remove(path);
    }
    return 0;
}

static int write_both(void **state)
{
    (void)state;
    write_file("passwd", passwd, sizeof passwd - 1);
    write_file("group", group, sizeof group - 1);
    return 0;
}

static void a_name_gives_ids_groups_home_and_shell(void **state)
{
    struct nk_user u;

    (void)state;
    assert_int_equal(nk_userdb_find(root, "sandbox", &u, NULL), 0);
    assert_int_equal(u.creds.uid, 1000);
    assert_int_equal(u.creds.gid, 1001);
    assert_int_equal(u.creds.group_count, 2);
    assert_int_equal(u.creds.groups[0], 2000);
    assert_int_equal(u.creds.groups[1], 2002);
    assert_string_equal(u.name, "sandbox");
    assert_string_equal(u.home, "/home/sandbox");
    assert_string_equal(u.shell, "/bin/zsh");
}

static void a_number_finds_the_same_entry(void **state)
{
    struct nk_user u;

    (void)state;
    assert_int_equal(nk_userdb_find(root, "1000", &u, NULL), 0);
    assert_string_equal(u.name, "sandbox");
    assert_int_equal(u.creds.gid, 1001);
    assert_int_equal(u.creds.group_count, 2);
}

static void a_number_without_an_entry_never_gets_group_0(void **state)
{
    struct nk_user u;

    (void)state;
    assert_int_equal(nk_userdb_find(root, "4321", &u, NULL), 0);
    assert_int_equal(u.creds.uid, 4321);
    assert_int_equal(u.creds.gid, 4321);
    assert_int_equal(u.creds.group_count, 0);
    assert_string_equal(u.name, "4321");
    assert_string_equal(u.home, "/");
    assert_string_equal(u.shell, "/bin/sh");
}

static void a_group_that_is_asked_for_replaces_the_others(void **state)
{
    struct nk_user u;

    (void)state;
    assert_int_equal(nk_userdb_find(root, "1000:7", &u, NULL), 0);
    assert_int_equal(u.creds.uid, 1000);
    assert_int_equal(u.creds.gid, 7);
    assert_int_equal(u.creds.group_count, 0);
    assert_string_equal(u.home, "/home/sandbox");
}

static void empty_fields_and_a_last_line_without_end_are_read(void **state)
{
    struct nk_user u;

    (void)state;
    assert_int_equal(nk_userdb_find(root, "bare", &u, NULL), 0);
    assert_string_equal(u.home, "/");
    assert_string_equal(u.shell, "/bin/sh");
    assert_int_equal(nk_userdb_find(root, "last", &u, NULL), 0);
    assert_int_equal(u.creds.uid, 1003);
}

static void what_is_no_entry_is_not_found(void **state)
{
    static const char *const unknown[] = {"nobody-here", "#",  "+@nis", "short", "bad",
                                          "huge",        "-1", " ",     "root "};
    struct nk_user u;
    struct nk_err err;

    (void)state;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        assert_int_equal(nk_userdb_find(root, unknown[i], &u, &err), -1);
        assert_int_equal(err.code, NK_NOT_FOUND);
    }
}

static void what_is_no_user_at_all_is_refused(void **state)
{
    static const char *const bad[] = {"", ":", "1:", ":1", "1:2:3", "sandbox:1", "1:4294967295"};
    struct nk_user u;
    struct nk_err err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(nk_userdb_find(root, bad[i], &u, &err), -1);
        assert_int_equal(err.code, NK_BAD_REQUEST);
    }
    assert_int_equal(nk_userdb_find(root, "4294967295", &u, &err), -1);
    assert_int_equal(nk_userdb_find(root, "99999999999999999999", &u, &err), -1);
}

static void a_line_too_long_hides_only_itself(void **state)
{
    const char tail[] = ":x:9:9::/:/bin/sh\nafter:x:1009:1009::/a:/bin/sh\n";
    const size_t fill = 200000;
    char *text = malloc(fill + sizeof tail);
    struct nk_user u;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', fill);
    memcpy(text + fill, tail, sizeof tail);
    write_file("passwd", text, fill + sizeof tail - 1);
    free(text);
    assert_int_equal(nk_userdb_find(root, "after", &u, NULL), 0);
    assert_int_equal(u.creds.uid, 1009);
    assert_int_equal(nk_userdb_find(root, "9", &u, NULL), 0);
    assert_string_equal(u.name, "9"); /* the rest of the long line is no entry */
}

static void a_nul_in_a_line_hides_only_that_line(void **state)
{
    const char text[] = "evil\0:x:0:0::/:/bin/sh\nfine:x:1010:1010::/:/bin/sh\n";
    struct nk_user u;

    (void)state;
    write_file("passwd", text, sizeof text - 1);
    assert_int_equal(nk_userdb_find(root, "evil", &u, NULL), -1);
    assert_int_equal(nk_userdb_find(root, "fine", &u, NULL), 0);
}

static void groups_are_bounded_with_room_for_a_mark(void **state)
{
    char text[8192];
    size_t n = 0;
    struct nk_user u;

    (void)state;
    for (unsigned i = 0; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "g%u:x:%u:sandbox\n", i, 5000 + i);
    write_file("group", text, n);
    assert_int_equal(nk_userdb_find(root, "sandbox", &u, NULL), 0);
    assert_int_equal(u.creds.group_count, NK_CREDS_GROUPS - 1);
}

static void without_the_files_numbers_still_work(void **state)
{
    struct nk_user u;
    struct nk_err err;

    (void)state;
    assert_int_equal(nk_userdb_find("/nowhere", "12:13", &u, NULL), 0);
    assert_int_equal(u.creds.gid, 13);
    assert_int_equal(nk_userdb_find("/nowhere", "0", &u, NULL), 0);
    assert_int_equal(u.creds.gid, 0);
    assert_int_equal(nk_userdb_find("/nowhere", "root", &u, &err), -1);
    assert_int_equal(err.code, NK_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_name_gives_ids_groups_home_and_shell, write_both),
        cmocka_unit_test_setup(a_number_finds_the_same_entry, write_both),
        cmocka_unit_test_setup(a_number_without_an_entry_never_gets_group_0, write_both),
        cmocka_unit_test_setup(a_group_that_is_asked_for_replaces_the_others, write_both),
        cmocka_unit_test_setup(empty_fields_and_a_last_line_without_end_are_read, write_both),
        cmocka_unit_test_setup(what_is_no_entry_is_not_found, write_both),
        cmocka_unit_test_setup(what_is_no_user_at_all_is_refused, write_both),
        cmocka_unit_test_setup(a_line_too_long_hides_only_itself, write_both),
        cmocka_unit_test_setup(a_nul_in_a_line_hides_only_that_line, write_both),
        cmocka_unit_test_setup(groups_are_bounded_with_room_for_a_mark, write_both),
        cmocka_unit_test(without_the_files_numbers_still_work),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
