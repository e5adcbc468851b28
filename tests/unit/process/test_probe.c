#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/creds.h"
#include "process/cgroups.h"
#include "process/probe.h"

#define ALL ((1u << NK_MECH_COUNT) - 1)

static const struct nk_creds user = {.uid = 54321, .gid = 54321};

static void assert_sane(const struct nk_kernel *k)
{
    for (int m = 0; m < NK_MECH_COUNT; m++)
        assert_int_equal(k->mech[m].available, k->mech[m].reason[0] == '\0');
}

static void names_go_both_ways(void **state)
{
    (void)state;
    for (int m = 0; m < NK_MECH_COUNT; m++)
        assert_int_equal(nk_probe_mech(nk_probe_name((enum nk_mech)m)), m);
    assert_int_equal(nk_probe_mech("nothing"), -1);
}

static void the_quick_part_leaves_the_rest_untested(void **state)
{
    struct nk_kernel k;

    (void)state;
    nk_probe_quick(&k, 0);
    assert_sane(&k);
    assert_false(k.complete);
    assert_true(nk_has(&k, NK_MECH_PROC));
    assert_false(nk_has(&k, NK_MECH_UID_DROP));
    assert_string_equal(k.mech[NK_MECH_UID_DROP].reason, "not tested yet");
}

static void the_slow_part_completes_it(void **state)
{
    struct nk_cgroups groups = {.name = ""};
    struct nk_kernel k;

    (void)state;
    nk_probe_quick(&k, 0);
    nk_probe_groups(&k, 0, &groups);
    nk_probe_slow(&k, 0, &user);
    assert_int_equal(nk_has(&k, NK_MECH_CGROUP), nk_cgroups_are_open(&groups));
    nk_cgroups_close(&groups);
    assert_sane(&k);
    assert_true(k.complete);
    for (int m = 0; m < NK_MECH_COUNT; m++)
        assert_string_not_equal(k.mech[m].reason, "not tested yet");
    assert_true(nk_has(&k, NK_MECH_SECCOMP));
}

static void as_root_rights_can_be_dropped_and_are_judged(void **state)
{
    static const enum nk_mech want[] = {NK_MECH_UID_DROP, NK_MECH_THREAD_IDS, NK_MECH_MARK,
                                        NK_MECH_KILL_TREE, NK_MECH_PEER_CREDS};
    const struct nk_creds root = {0};
    struct nk_kernel k;

    (void)state;
    if (geteuid() != 0)
        skip(); /* needs root */
    nk_probe_quick(&k, 0);
    nk_probe_slow(&k, 0, &user);
    for (size_t i = 0; i < NK_COUNT(want); i++)
        assert_string_equal(k.mech[want[i]].reason, "");
    assert_int_equal(geteuid(), 0);
    nk_probe_slow(&k, 0, &root); /* commands as root: tried as somebody else */
    assert_true(nk_has(&k, NK_MECH_UID_DROP));
}

static void without_root_the_reason_says_so(void **state)
{
    struct nk_kernel k;

    (void)state;
    if (geteuid() == 0)
        skip(); /* needs to be no root */
    nk_probe_quick(&k, 0);
    nk_probe_slow(&k, 0, &user);
    assert_string_equal(k.mech[NK_MECH_UID_DROP].reason, "not root");
    assert_string_equal(k.mech[NK_MECH_MARK].reason, "not root");
    assert_false(nk_has(&k, NK_MECH_KILL_TREE));
}

static void what_is_disabled_acts_as_missing(void **state)
{
    struct nk_kernel k;

    (void)state;
    nk_probe_quick(&k, ALL);
    for (int m = 0; m < NK_MECH_COUNT; m++)
        assert_string_equal(k.mech[m].reason, "disabled by --without");
    nk_probe_slow(&k, ALL, &user);
    for (int m = 0; m < NK_MECH_COUNT; m++)
        assert_string_equal(k.mech[m].reason, "disabled by --without");
    assert_true(k.complete);
}

static void a_tree_cannot_be_killed_without_a_way_to_find_it(void **state)
{
    struct nk_kernel k;

    (void)state;
    nk_probe_quick(&k, 0);
    nk_probe_slow(&k, 1u << NK_MECH_MARK | 1u << NK_MECH_CGROUP, &user);
    assert_false(nk_has(&k, NK_MECH_KILL_TREE));
    assert_non_null(strstr(k.mech[NK_MECH_KILL_TREE].reason, "disabled by --without"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_go_both_ways),
        cmocka_unit_test(the_quick_part_leaves_the_rest_untested),
        cmocka_unit_test(the_slow_part_completes_it),
        cmocka_unit_test(as_root_rights_can_be_dropped_and_are_judged),
        cmocka_unit_test(without_root_the_reason_says_so),
        cmocka_unit_test(what_is_disabled_acts_as_missing),
        cmocka_unit_test(a_tree_cannot_be_killed_without_a_way_to_find_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
