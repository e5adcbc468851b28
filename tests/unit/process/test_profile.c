#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "process/profile.h"

static char seen[2048]; /* the rules in words */

static int begin(const struct nk_profile_verdict *otherwise, void *ctx, struct nk_err *err)
{
    (void)ctx;
    (void)err;
    (void)snprintf(seen, sizeof seen, "else %d:%d", (int)otherwise->action, otherwise->error);
    return 0;
}

static int add(const struct nk_profile_rule *r, void *ctx, struct nk_err *err)
{
    size_t len = strlen(seen);

    (void)ctx;
    (void)err;
    (void)snprintf(seen + len, sizeof seen - len, " %s %d:%d", r->name, (int)r->verdict.action,
                   r->verdict.error);
    for (unsigned i = 0; i < r->arg_count; i++) {
        len = strlen(seen);
        (void)snprintf(seen + len, sizeof seen - len, "(%u %d %llu %llu)", r->arg[i].index,
                       (int)r->arg[i].op, (unsigned long long)r->arg[i].value,
                       (unsigned long long)r->arg[i].value_two);
    }
    return 0;
}

static int read_text(const char *text, struct nk_err *err)
{
    const struct nk_profile_reader reader = {begin, add, NULL};

    return nk_profile_read(text, strlen(text), &reader, err);
}

static void assert_rules(const char *text, const char *want)
{
    struct nk_err err = {0};

    assert_int_equal(read_text(text, &err), 0);
    assert_string_equal(seen, want);
}

static void each_name_of_an_entry_is_a_rule(void **state)
{
    (void)state;
    assert_rules("{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":38,"
                 "\"architectures\":[\"SCMP_ARCH_X86_64\"],\"syscalls\":["
                 "{\"names\":[\"read\",\"write\"],\"action\":\"SCMP_ACT_ALLOW\"},"
                 "{\"names\":[\"ptrace\"],\"action\":\"SCMP_ACT_ERRNO\"},"
                 "{\"names\":[\"reboot\"],\"action\":\"SCMP_ACT_KILL_PROCESS\"}]}",
                 "else 1:38 read 0:1 write 0:1 ptrace 1:1 reboot 2:1");
    assert_rules("{\"defaultAction\":\"SCMP_ACT_ALLOW\"}", "else 0:1");
}

static void arguments_are_conditions(void **state)
{
    (void)state;
    assert_rules("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"clone\"],"
                 "\"action\":\"SCMP_ACT_ERRNO\",\"args\":[{\"index\":0,\"value\":2114060288,"
                 "\"valueTwo\":5,\"op\":\"SCMP_CMP_MASKED_EQ\"}]}]}",
                 "else 0:1 clone 1:1(0 6 2114060288 5)");
}

static void conditions_on_capabilities_hold_as_for_none(void **state)
{
    (void)state;
    assert_rules("{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":["
                 "{\"names\":[\"mount\"],\"action\":\"SCMP_ACT_ALLOW\","
                 "\"includes\":{\"caps\":[\"CAP_SYS_ADMIN\"]}},"
                 "{\"names\":[\"clone\"],\"action\":\"SCMP_ACT_ALLOW\","
                 "\"excludes\":{\"caps\":[\"CAP_SYS_ADMIN\"],\"arches\":[\"s390\"]}},"
                 "{\"names\":[\"other\"],\"action\":\"SCMP_ACT_ALLOW\","
                 "\"includes\":{\"arches\":[\"s390\"]}},"
                 "{\"names\":[\"sync\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":{}}]}",
                 "else 1:1 clone 0:1 sync 0:1");
}

static void what_cannot_be_meant_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "7",
        "{\"defaultAction\":\"allow\"}",
        "{\"defaultAction\":\"SCMP_ACT_TRACE\"}",
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"defaultErrnoRet\":5000}",
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"action\":\"SCMP_ACT_ERRNO\"}]}",
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"a\"]}]}",
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[7]}",
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[7],"
        "\"action\":\"SCMP_ACT_ERRNO\"}]}",
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"a\"],"
        "\"action\":\"SCMP_ACT_ERRNO\",\"args\":[{\"index\":6,\"value\":1,\"op\":\"SCMP_CMP_EQ\"}]}"
        "]}",
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"a\"],"
        "\"action\":\"SCMP_ACT_ERRNO\",\"args\":[{\"value\":1,\"op\":\"SCMP_CMP_EQ\"}]}]}",
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"a\"],"
        "\"action\":\"SCMP_ACT_ERRNO\",\"args\":[{\"index\":0,\"op\":\"EQ\"}]}]}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct nk_err err = {0};

        assert_int_equal(read_text(bad[i], &err), -1);
        assert_true(err.msg[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_name_of_an_entry_is_a_rule),
        cmocka_unit_test(arguments_are_conditions),
        cmocka_unit_test(conditions_on_capabilities_hold_as_for_none),
        cmocka_unit_test(what_cannot_be_meant_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
