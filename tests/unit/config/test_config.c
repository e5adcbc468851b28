#include "config_fixture.h"

static void defaults_are_those_of_the_manual(void **state)
{
    struct nk_config c;

    (void)state;
    must_load(NO_ARGS, &c);
    assert_string_equal(c.socket, "/run/nookd/api.sock");
    assert_int_equal(c.listen.count, 0);
    assert_string_equal(c.token_file, "/run/nookd/token");
    assert_int_equal(c.token_fd, -1);
    assert_false(c.token_given);
    assert_null(c.user);
    assert_int_equal(c.writable.count, 4);
    assert_string_equal(c.writable.item[0], "/workspace");
    assert_null(c.writable.item[4]);
    assert_int_equal(c.uid_first, 20000);
    assert_int_equal(c.uid_last, 59999);
    assert_int_equal(c.mark_last, 64999);
    assert_int_equal(c.timeout_ms, 0);
    assert_int_equal(c.max_timeout_ms, 86400000);
    assert_int_equal(c.grace_ms, 5000);
    assert_int_equal(c.max_output, 8 << 20);
    assert_int_equal(c.max_upload, 0);
    assert_int_equal(c.nproc, c.max_processes);
    assert_int_equal(c.pass_env.count, 4);
    assert_int_equal(c.log_level, NK_LOG_INFO);
    assert_int_equal(c.log_json, -1);
    assert_null(c.program);
    assert_null(c.token);
    assert_true(strlen(c.id) > 0);
    nk_config_fini(&c);
}

static void flag_wins_over_variable_over_file_over_default(void **state)
{
    struct nk_config c;
    char *path = write_file("{\"max-commands\": 7, \"grace\": 1.5, \"timeout\": 9, "
                            "\"writable\": [\"/a\", \"/b\"], \"no-auth\": true}");

    (void)state;
    setenv("NOOKD_GRACE", "2", 1);
    setenv("NOOKD_TIMEOUT", "8", 1);
    setenv("NOOKD_NO_AUTH", "false", 1);
    must_load(ARGS("--config", path, "--timeout=7.25"), &c);
    assert_int_equal(c.max_commands, 7);
    assert_int_equal(c.grace_ms, 2000);
    assert_int_equal(c.timeout_ms, 7250);
    assert_int_equal(c.max_contexts, 16);
    assert_int_equal(c.writable.count, 2);
    assert_false(c.no_auth);
    nk_config_fini(&c);
    unlink(path);
    free(path);
}

static void file_may_be_named_by_a_variable(void **state)
{
    struct nk_config c;
    char *path = write_file("{\"id\": \"box\", \"user\": null, \"uid-range\": \"5-6\"}");

    (void)state;
    setenv("NOOKD_CONFIG", path, 1);
    must_load(NO_ARGS, &c);
    assert_string_equal(c.id, "box");
    assert_null(c.user);
    assert_int_equal(c.uid_first, 5);
    assert_int_equal(c.uid_last, 6);
    nk_config_fini(&c);
    unlink(path);
    free(path);
}

static void a_repeated_flag_collects_and_replaces_the_default(void **state)
{
    struct nk_config c;

    (void)state;
    setenv("NOOKD_WRITABLE", "/from,/variable,/three", 1);
    setenv("NOOKD_ENV", "A=1,2\nB=", 1);
    must_load(ARGS("--writable", "/x", "--writable=/y", "--listen", "127.0.0.1:0", "--listen",
                   "[::1]:8099"),
              &c);
    assert_int_equal(c.writable.count, 2);
    assert_string_equal(c.writable.item[1], "/y");
    assert_int_equal(c.listen.count, 2);
    assert_int_equal(c.env.count, 2);
    assert_string_equal(c.env.item[0], "A=1,2");
    assert_string_equal(c.env.item[1], "B=");
    nk_config_fini(&c);
}

static void every_row_has_an_own_name_flag_and_variable(void **state)
{
    char a[NK_CONFIG_VARIABLE_MAX];
    char b[NK_CONFIG_VARIABLE_MAX];

    (void)state;
    for (size_t i = 0; i < nk_config_table_count; i++) {
        const struct nk_config_row *row = &nk_config_table[i];

        assert_ptr_equal(nk_config_table_find(row->name, strlen(row->name)), row);
        nk_config_table_variable(row, a);
        assert_int_equal(strlen(a), strlen(row->name) + strlen("NOOKD_"));
        assert_non_null(row->help);
        for (size_t k = 0; k < i; k++) {
            nk_config_table_variable(&nk_config_table[k], b);
            assert_string_not_equal(a, b);
            assert_true(row->type == NK_CONFIG_FILE || row->at != nk_config_table[k].at);
        }
    }
}

static void every_option_of_the_manual_is_there(void **state)
{
    static const char *const names[] = {
        "socket",       "listen",        "vsock",        "token-file",
        "token-fd",     "no-auth",       "allow-origin", "allow-host",
        "user",         "program-user",  "allow-user",   "id",
        "writable",     "output-dir",    "readable",     "identities",
        "uid-range",    "state-dir",     "quota-bytes",  "quota-files",
        "max-commands", "max-processes", "max-contexts", "mark-gids",
        "timeout",      "max-timeout",   "ttl",          "max-ttl",
        "idle-timeout", "grace",         "runtime",      "runtimes",
        "max-output",   "log-bytes",     "log-total",    "max-body",
        "max-upload",   "max-outputs",   "network",      "network-enforced-by",
        "env",          "pass-env",      "seccomp",      "nproc",
        "nofile",       "fsize",         "memory",       "without",
        "signals",      "map-signal",    "on-main-exit", "parent-death",
        "pass-fd",      "log-level",     "log-format",   "config",
    };

    (void)state;
    for (size_t i = 0; i < NK_COUNT(names); i++)
        assert_non_null(nk_config_table_find(names[i], strlen(names[i])));
    assert_int_equal(nk_config_table_count, NK_COUNT(names));
}

static void what_follows_two_dashes_is_the_program(void **state)
{
    const char *const *args = ARGS("--id", "x", "--", "sleep", "--id");
    struct nk_config c;

    (void)state;
    must_load(args, &c);
    assert_string_equal(c.program[0], "sleep");
    assert_string_equal(c.program[1], "--id");
    assert_null(c.program[2]);
    nk_config_fini(&c);
    must_refuse(ARGS("--"), "--");
}

static void an_unknown_option_is_named(void **state)
{
    (void)state;
    must_refuse(ARGS("--nope"), "--nope");
    must_refuse(ARGS("--nope=1"), "--nope");
    must_refuse(ARGS("-x"), "-x");
    must_refuse(ARGS("word"), "word");
    must_refuse(ARGS("--listen"), "--listen");
    setenv("NOOKD_NOPE", "1", 1);
    must_refuse(NO_ARGS, "NOOKD_NOPE");
}

static void variables_of_a_service_of_our_name_are_not_options(void **state)
{
    struct nk_config c;

    (void)state;
    setenv("NOOKD_SERVICE_HOST", "10.0.0.1", 1);
    setenv("NOOKD_PORT", "tcp://10.0.0.1:80", 1);
    setenv("NOOKD_PORT_80_TCP_ADDR", "10.0.0.1", 1);
    must_load(NO_ARGS, &c);
    nk_config_fini(&c);
}

static void bad_files_are_refused_and_named(void **state)
{
    static const char *const bad[][2] = {
        {"{\"nope\": 1}", "nope"},
        {"{\"config\": \"/x\"}", "config"},
        {"{\"max-commands\": \"many\"}", "max-commands"},
        {"{\"max-commands\": true}", "max-commands"},
        {"{\"max-commands\": 1.5}", "max-commands"},
        {"{\"no-auth\": \"true\"}", "no-auth"},
        {"{\"writable\": [1]}", "writable"},
        {"{\"id\": [\"a\"]}", "id"},
        {"[]", "object"},
        {"{", "--config"},
        {"{\"id\": \"a\", \"id\": \"b\"}", "--config"},
    };

    (void)state;
    for (size_t i = 0; i < NK_COUNT(bad); i++) {
        char *path = write_file(bad[i][0]);

        must_refuse(ARGS("--config", path), bad[i][1]);
        unlink(path);
        free(path);
    }
}

static void a_malformed_variable_is_named_as_a_variable(void **state)
{
    (void)state;
    setenv("NOOKD_MAX_COMMANDS", "many", 1);
    must_refuse(NO_ARGS, "NOOKD_MAX_COMMANDS");
}

static void the_token_variable_is_wiped_in_place(void **state)
{
    char *text = strdup("NOOKD_TOKEN=secret-of-the-test");
    struct nk_config c;

    (void)state;
    assert_int_equal(putenv(text), 0);
    must_load(ARGS("--listen", "0.0.0.0:0"), &c);
    assert_string_equal(c.token, "secret-of-the-test");
    assert_true(c.token_given);
    assert_null(nk_config_env("NOOKD_TOKEN"));
    assert_int_equal(text[strlen("NOOKD_TOKEN=")], '\0');
    assert_int_equal(text[strlen("NOOKD_TOKEN=secret")], '\0');
    nk_config_fini(&c);
    free(text);
}

static void the_token_is_wiped_also_when_the_start_fails(void **state)
{
    char *text = strdup("NOOKD_TOKEN=secret");

    (void)state;
    assert_int_equal(putenv(text), 0);
    must_refuse(ARGS("--nope"), "--nope");
    assert_int_equal(text[strlen("NOOKD_TOKEN=")], '\0');
    free(text);
}

static void a_stronger_source_decides_which_token_counts(void **state)
{
    struct nk_config c;

    (void)state;
    must_refuse(ARGS("--token-file", "/t", "--token-fd", "5"), "--token-file");
    setenv("NOOKD_TOKEN", "secret", 1);
    must_load(ARGS("--token-file", "/t"), &c);
    assert_null(c.token);
    assert_string_equal(c.token_file, "/t");
    nk_config_fini(&c);
    setenv("NOOKD_TOKEN", "secret", 1);
    setenv("NOOKD_TOKEN_FILE", "/t", 1);
    must_refuse(NO_ARGS, "NOOKD_TOKEN");
    setenv("NOOKD_TOKEN", "", 1);
    must_refuse(NO_ARGS, "NOOKD_TOKEN");
}

/* --print-config of `args`, in memory that the caller frees. */
static char *printed(const char *const *args)
{
    static const char template[] = "/tmp/test_config.XXXXXX";
    char path[sizeof template];
    char *text = calloc(1, 65536);
    int saved = dup(1);
    struct nk_config c;
    int fd;

    memcpy(path, template, sizeof template);
    fd = mkstemp(path);
    assert_true(fd >= 0 && saved >= 0 && text);
    must_load(args, &c);
    fflush(stdout);
    dup2(fd, 1);
    assert_int_equal(nk_config_print_json(&c), 0);
    dup2(saved, 1);
    assert_true(pread(fd, text, 65535, 0) > 0);
    close(saved);
    close(fd);
    unlink(path);
    nk_config_fini(&c);
    return text;
}

static void the_printed_configuration_reads_back_as_itself(void **state)
{
    char *first = printed(ARGS("--timeout", "1.25", "--without", "pidfd,cgroup", "--env", "A=\"b\"",
                               "--user", "1000:1000", "--max-upload", "1MiB", "--listen",
                               "127.0.0.1:80", "--log-format", "json", "--identities",
                               "--parent-death", "INT", "--seccomp", "off"));
    char *path = write_file(first);
    char *second = printed(ARGS("--config", path));

    (void)state;
    assert_string_equal(first, second);
    assert_non_null(strstr(first, "\"timeout\":1.25"));
    assert_non_null(strstr(first, "\"without\":\"pidfd,cgroup\""));
    assert_non_null(strstr(first, "\"max-upload\":1048576"));
    unlink(path);
    free(path);
    free(first);
    free(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults_are_those_of_the_manual, fresh_environment),
        cmocka_unit_test_setup(flag_wins_over_variable_over_file_over_default, fresh_environment),
        cmocka_unit_test_setup(file_may_be_named_by_a_variable, fresh_environment),
        cmocka_unit_test_setup(a_repeated_flag_collects_and_replaces_the_default,
                               fresh_environment),
        cmocka_unit_test_setup(every_row_has_an_own_name_flag_and_variable, fresh_environment),
        cmocka_unit_test_setup(every_option_of_the_manual_is_there, fresh_environment),
        cmocka_unit_test_setup(what_follows_two_dashes_is_the_program, fresh_environment),
        cmocka_unit_test_setup(an_unknown_option_is_named, fresh_environment),
        cmocka_unit_test_setup(variables_of_a_service_of_our_name_are_not_options,
                               fresh_environment),
        cmocka_unit_test_setup(bad_files_are_refused_and_named, fresh_environment),
        cmocka_unit_test_setup(a_malformed_variable_is_named_as_a_variable, fresh_environment),
        cmocka_unit_test_setup(the_token_variable_is_wiped_in_place, fresh_environment),
        cmocka_unit_test_setup(the_token_is_wiped_also_when_the_start_fails, fresh_environment),
        cmocka_unit_test_setup(a_stronger_source_decides_which_token_counts, fresh_environment),
        cmocka_unit_test_setup(the_printed_configuration_reads_back_as_itself, fresh_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
