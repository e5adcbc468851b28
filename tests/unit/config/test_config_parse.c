#include "config_fixture.h"

static void numbers_take_their_units(void **state)
{
    struct nk_config c;

    (void)state;
    must_load(ARGS("--max-output", "64KiB", "--fsize", "2G", "--max-upload", "none", "--nproc",
                   "none", "--grace", "0", "--ttl", "0.0001", "--parent-death", "SIGINT"),
              &c);
    assert_int_equal(c.max_output, 65536);
    assert_true(c.fsize == 2ull << 30);
    assert_int_equal(c.nproc, 0);
    assert_int_equal(c.grace_ms, 0);
    assert_int_equal(c.ttl_ms, 1);
    assert_int_equal(c.parent_death, 2);
    nk_config_fini(&c);
}

static void choices_and_masks_become_numbers(void **state)
{
    struct nk_config c;

    (void)state;
    must_load(ARGS("--without", "openat2,pidfd", "--signals", "child", "--on-main-exit", "leave",
                   "--log-level", "error", "--log-format", "json", "--socket", "none", "--listen",
                   "127.0.0.1:1", "--network-enforced-by", "outside"),
              &c);
    assert_int_equal(c.without, 1 | 4);
    assert_true(c.signals_child);
    assert_true(c.main_exit_leave);
    assert_true(c.network_outside);
    assert_int_equal(c.log_level, NK_LOG_ERROR);
    assert_int_equal(c.log_json, 1);
    assert_null(c.socket);
    nk_config_fini(&c);
}

static const char *const malformed[][2] = {
    {"--listen", "localhost:80"},
    {"--listen", "127.0.0.1"},
    {"--listen", "127.0.0.1:65536"},
    {"--listen", "::1:80"},
    {"--listen", "[::1:80"},
    {"--socket", "api.sock"},
    {"--writable", "/a/../b"},
    {"--writable", ""},
    {"--vsock", "0"},
    {"--token-fd", "x"},
    {"--no-auth", "--listen"},
    {"--allow-host", "a:80"},
    {"--allow-origin", "example"},
    {"--user", "a b"},
    {"--user", "1:"},
    {"--id", "a/b"},
    {"--uid-range", "9-8"},
    {"--uid-range", "0-8"},
    {"--uid-range", "5"},
    {"--max-commands", "0"},
    {"--max-commands", "-1"},
    {"--max-commands", "1x"},
    {"--timeout", "0"},
    {"--timeout", "-1"},
    {"--timeout", "nan"},
    {"--timeout", "1e9"},
    {"--timeout", "1."},
    {"--timeout", "99999999999999999999"},
    {"--max-body", "1"},
    {"--max-output", "8X"},
    {"--max-output", "8MB"},
    {"--fsize", "18446744073709551616"},
    {"--network", "example.org"},
    {"--network", "a:1,,b:2"},
    {"--network-enforced-by", "me"},
    {"--env", "A"},
    {"--env", "1A=x"},
    {"--env", "=x"},
    {"--seccomp", "on"},
    {"--without", "openat3"},
    {"--without", "openat2,"},
    {"--signals", "both"},
    {"--map-signal", "TERM"},
    {"--map-signal", "TERM:NOPE"},
    {"--map-signal", "0:TERM"},
    {"--map-signal", "KILL:TERM"},
    {"--map-signal", "19:0"},
    {"--parent-death", "NOPE"},
    {"--pass-fd", "2"},
    {"--log-level", "loud"},
    {"--config", "/nonexistent.json"},
};

static void malformed_values_are_refused_and_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < NK_COUNT(malformed); i++) {
        bool joined = strcmp(malformed[i][0], "--no-auth") == 0;

        if (joined)
            must_refuse(ARGS("--no-auth=perhaps"), "--no-auth");
        else
            must_refuse(ARGS(malformed[i][0], malformed[i][1]), malformed[i][0]);
    }
}

static void an_open_address_needs_a_token(void **state)
{
    struct nk_config c;

    (void)state;
    must_refuse(ARGS("--listen", "0.0.0.0:80"), "--listen 0.0.0.0:80");
    must_refuse(ARGS("--listen", "[::]:80"), "--listen [::]:80");
    must_refuse(ARGS("--listen", "[::2]:80"), "token");
    must_refuse(ARGS("--vsock", "80"), "--vsock");
    must_refuse(ARGS("--listen", "0.0.0.0:80", "--token-file", "/t", "--no-auth"), "--no-auth");
    must_refuse(ARGS("--socket", "none"), "--socket");
    must_load(ARGS("--listen", "127.3.2.1:80", "--listen", "[::1]:80", "--listen",
                   "[::ffff:127.0.0.1]:80", "--no-auth"),
              &c);
    nk_config_fini(&c);
    must_load(ARGS("--listen", "0.0.0.0:80", "--vsock", "80", "--token-file", "/t"), &c);
    assert_true(c.token_given);
    nk_config_fini(&c);
}

static void options_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    must_refuse(ARGS("--timeout", "10", "--max-timeout", "5"), "--timeout");
    must_refuse(ARGS("--ttl", "10", "--max-ttl", "5"), "--ttl");
    must_refuse(ARGS("--identities", "--uid-range", "60000-60001"), "--uid-range");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(numbers_take_their_units, fresh_environment),
        cmocka_unit_test_setup(choices_and_masks_become_numbers, fresh_environment),
        cmocka_unit_test_setup(malformed_values_are_refused_and_named, fresh_environment),
        cmocka_unit_test_setup(an_open_address_needs_a_token, fresh_environment),
        cmocka_unit_test_setup(options_that_contradict_each_other_are_refused, fresh_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
