#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "process/cgroup_place.h"

static const char HYBRID_MOUNTS[] =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /sys/fs/cgroup/acct,pids rw shared:7 master:2 - cgroup cgroup rw,cpuacct,pids\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
static const char HYBRID_GROUPS[] = "8:cpuacct,pids:/pod\n4:memory:/\n1:name=systemd:/x\n0::/a/b\n";

static void assert_place(const char *mounts, const char *groups, enum nk_cgroup_kind kind,
                         const char *want)
{
    char got[128] = "";

    assert_int_equal(nk_cgroup_place_find(mounts, groups, kind, got, sizeof got), 0);
    assert_string_equal(got, want);
}

static void assert_none(const char *mounts, const char *groups, enum nk_cgroup_kind kind)
{
    char got[128];

    assert_int_equal(nk_cgroup_place_find(mounts, groups, kind, got, sizeof got), -ENOENT);
}

static void each_hierarchy_has_its_place(void **state)
{
    (void)state;
    assert_place(HYBRID_MOUNTS, HYBRID_GROUPS, NK_CGROUP_UNIFIED, "/sys/fs/cgroup/unified/a/b");
    assert_place(HYBRID_MOUNTS, HYBRID_GROUPS, NK_CGROUP_MEMORY, "/sys/fs/cgroup/memory");
    assert_place(HYBRID_MOUNTS, HYBRID_GROUPS, NK_CGROUP_PIDS, "/sys/fs/cgroup/acct,pids/pod");
}

static void a_mount_of_a_part_shows_what_is_below_it(void **state)
{
    const char *mounts = "9 8 0:30 /pod/c1 /sys/fs/cgroup rw - cgroup2 cgroup rw,nsdelegate";

    (void)state;
    assert_place(mounts, "0::/pod/c1\n", NK_CGROUP_UNIFIED, "/sys/fs/cgroup");
    assert_place(mounts, "0::/pod/c1/leaf\n", NK_CGROUP_UNIFIED, "/sys/fs/cgroup/leaf");
    assert_none(mounts, "0::/pod/c10\n", NK_CGROUP_UNIFIED);
    assert_none(mounts, "0::/\n", NK_CGROUP_UNIFIED);
}

static void what_is_outside_or_missing_has_no_place(void **state)
{
    const char *unified = "9 8 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n";

    (void)state;
    assert_none(unified, "0::/../other\n", NK_CGROUP_UNIFIED);
    assert_none(unified, "", NK_CGROUP_UNIFIED);
    assert_none("", "0::/\n", NK_CGROUP_UNIFIED);
    assert_none(unified, HYBRID_GROUPS, NK_CGROUP_MEMORY);
    assert_none("nonsense\n9 8 0:30 / /sys\n", "0::/\n", NK_CGROUP_UNIFIED);
    assert_none("9 8 0:30 / /a\\040b rw - cgroup2 cgroup rw\n", "0::/\n", NK_CGROUP_UNIFIED);
    assert_none(HYBRID_MOUNTS, "4:memory_more:/\n", NK_CGROUP_MEMORY);
}

static void a_path_that_does_not_fit_is_refused(void **state)
{
    char got[16] = "untouched";

    (void)state;
    assert_int_equal(nk_cgroup_place_find(HYBRID_MOUNTS, HYBRID_GROUPS, NK_CGROUP_UNIFIED, got, 8),
                     -ENAMETOOLONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_hierarchy_has_its_place),
        cmocka_unit_test(a_mount_of_a_part_shows_what_is_below_it),
        cmocka_unit_test(what_is_outside_or_missing_has_no_place),
        cmocka_unit_test(a_path_that_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
