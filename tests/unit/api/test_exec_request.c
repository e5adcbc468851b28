/* Every field of a command's request, read or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/api.h"
#include "api/env.h"
#include "api/exec_request.h"
#include "base/arena.h"
#include "base/json.h"

static const char *const base_env[] = {"PATH=/bin", "HOME=/home/sandbox", "USER=sandbox", NULL};
static const char *const users[] = {"alice", NULL};

static const struct nk_api_settings settings = {
    .allow_users = users,
    .env = base_env,
    .working_dir = "/workspace",
    .timeout_ms = 0,
    .max_timeout_ms = 86400000,
    .max_output = 8 * 1024 * 1024,
    .log_bytes = 1024 * 1024,
};

struct fixture {
    struct nk_json *doc;
    struct nk_arena arena;
    struct nk_exec_request ask;
    struct nk_err err;
};

static int read_text(struct fixture *f, const char *text)
{
    *f = (struct fixture){0};
    assert_int_equal(nk_json_parse(text, strlen(text), &f->doc, &f->err), 0);
    return nk_exec_request_read(f->doc, NK_EXEC_STREAM, &settings, &f->arena, &f->ask, &f->err);
}

static void done(struct fixture *f)
{
    nk_exec_request_fini(&f->ask);
    nk_arena_fini(&f->arena);
    nk_json_free(f->doc);
}

static void refused(const char *text, enum nk_code code, const char *word)
{
    struct fixture f;

    assert_int_equal(read_text(&f, text), -1);
    assert_int_equal(f.err.code, code);
    if (!strstr(f.err.msg, word))
        fail_msg("%s: \"%s\" does not name %s", text, f.err.msg, word);
    done(&f);
}

static void a_string_is_for_the_shell(void **state)
{
    struct fixture f;

    (void)state;
    assert_int_equal(read_text(&f, "{\"command\":\"echo hi\"}"), 0);
    assert_true(f.ask.cmd.shell);
    assert_string_equal(f.ask.cmd.argv[0], "/bin/sh");
    assert_string_equal(f.ask.cmd.argv[1], "-c");
    assert_string_equal(f.ask.cmd.argv[2], "echo hi");
    assert_null(f.ask.cmd.argv[3]);
    done(&f);
}

static void a_list_is_run_as_it_is(void **state)
{
    struct fixture f;

    (void)state;
    assert_int_equal(read_text(&f, "{\"command\":[\"ls\",\"-l\",\"\"]}"), 0);
    assert_false(f.ask.cmd.shell);
    assert_string_equal(f.ask.cmd.argv[0], "ls");
    assert_string_equal(f.ask.cmd.argv[1], "-l");
    assert_string_equal(f.ask.cmd.argv[2], "");
    assert_null(f.ask.cmd.argv[3]);
    done(&f);
}

static void what_is_not_given_has_its_default(void **state)
{
    struct fixture f;

    (void)state;
    assert_int_equal(read_text(&f, "{\"command\":\"x\"}"), 0);
    assert_string_equal(f.ask.cmd.cwd, "/workspace");
    assert_int_equal(f.ask.cmd.timeout_ms, 0);
    assert_int_equal(f.ask.cmd.max_output, settings.max_output);
    assert_int_equal(f.ask.cmd.log_bytes, settings.log_bytes);
    assert_false(f.ask.cmd.stdin_given);
    assert_false(f.ask.cmd.stdin_open);
    assert_false(f.ask.detach);
    assert_false(f.ask.report_files);
    assert_null(f.ask.user);
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(f.ask.cmd.envp[i], base_env[i]);
    done(&f);
}

static void what_is_given_is_taken(void **state)
{
    struct fixture f;

    (void)state;
    assert_int_equal(read_text(&f, "{\"command\":\"x\",\"stdin_base64\":\"AAE=\",\"timeout\":1.5,"
                                   "\"cwd\":\"sub/dir\",\"user\":\"alice\",\"max_output\":10,"
                                   "\"report_files\":true,\"detach\":true,\"stdin_open\":true}"),
                     0);
    assert_true(f.ask.cmd.stdin_given);
    assert_int_equal(f.ask.cmd.stdin_len, 2);
    assert_memory_equal(f.ask.cmd.stdin_data, "\0\1", 2);
    assert_int_equal(f.ask.cmd.timeout_ms, 1500);
    assert_string_equal(f.ask.cmd.cwd, "/workspace/sub/dir");
    assert_ptr_equal(f.ask.user, users[0]);
    assert_int_equal(f.ask.cmd.max_output, 10);
    assert_true(f.ask.report_files && f.ask.detach && f.ask.cmd.stdin_open);
    done(&f);
}

static void an_empty_stdin_is_an_input_too(void **state)
{
    struct fixture f;

    (void)state;
    assert_int_equal(read_text(&f, "{\"command\":\"cat\",\"stdin\":\"\"}"), 0);
    assert_true(f.ask.cmd.stdin_given);
    assert_int_equal(f.ask.cmd.stdin_len, 0);
    done(&f);
}

static void bad_fields_are_refused_by_name(void **state)
{
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"{}", "command"},
        {"{\"command\":null}", "command"},
        {"{\"command\":5}", "command"},
        {"{\"command\":[]}", "empty"},
        {"{\"command\":[\"\"]}", "command[0]"},
        {"{\"command\":[\"a\",1]}", "command[1]"},
        {"{\"command\":\"x\",\"comand\":1}", "comand"},
        {"{\"command\":\"x\",\"stdin\":1}", "stdin"},
        {"{\"command\":\"x\",\"stdin\":\"a\",\"stdin_base64\":\"YQ==\"}", "stdin"},
        {"{\"command\":\"x\",\"stdin_base64\":\"Y\"}", "stdin_base64"},
        {"{\"command\":\"x\",\"stdin_open\":\"yes\"}", "stdin_open"},
        {"{\"command\":\"x\",\"timeout\":0}", "timeout"},
        {"{\"command\":\"x\",\"timeout\":-1}", "timeout"},
        {"{\"command\":\"x\",\"timeout\":1e99}", "timeout"},
        {"{\"command\":\"x\",\"timeout\":86401}", "timeout"},
        {"{\"command\":\"x\",\"timeout\":\"1\"}", "timeout"},
        {"{\"command\":\"x\",\"env\":[]}", "env"},
        {"{\"command\":\"x\",\"env\":{\"A\":1}}", "env.A"},
        {"{\"command\":\"x\",\"env\":{\"1A\":\"\"}}", "1A"},
        {"{\"command\":\"x\",\"env\":{\"A B\":\"\"}}", "A B"},
        {"{\"command\":\"x\",\"env\":{\"A=B\":\"\"}}", "A=B"},
        {"{\"command\":\"x\",\"env\":{\"\":\"\"}}", "env"},
        {"{\"command\":\"x\",\"cwd\":1}", "cwd"},
        {"{\"command\":\"x\",\"user\":7}", "user"},
        {"{\"command\":\"x\",\"report_files\":1}", "report_files"},
        {"{\"command\":\"x\",\"max_output\":-1}", "max_output"},
        {"{\"command\":\"x\",\"max_output\":1.5}", "max_output"},
        {"{\"command\":\"x\",\"max_output\":8388609}", "max_output"},
        {"{\"command\":\"x\",\"detach\":0}", "detach"},
    };

    (void)state;
    for (size_t i = 0; i < NK_COUNT(cases); i++)
        refused(cases[i].text, NK_BAD_REQUEST, cases[i].word);
    refused("{\"command\":\"x\",\"cwd\":\"\"}", NK_BAD_PATH, "cwd");
    refused("{\"command\":\"x\",\"user\":\"root\"}", NK_FORBIDDEN, "root");
    refused("{\"command\":\"x\",\"user\":\"\"}", NK_FORBIDDEN, "user");
}

static const char *value_of(const char *const *envp, const char *key)
{
    const char *found = NULL;

    for (; *envp; envp++) {
        if (strncmp(*envp, key, strlen(key)) == 0 && (*envp)[strlen(key)] == '=') {
            assert_null(found); /* no name twice */
            found = *envp + strlen(key) + 1;
        }
    }
    return found;
}

static void env_is_laid_over_the_base(void **state)
{
    struct fixture f;

    (void)state;
    assert_int_equal(read_text(&f, "{\"command\":\"x\",\"env\":{\"HOME\":\"/tmp\",\"_a1\":\"=\","
                                   "\"EMPTY\":\"\"}}"),
                     0);
    assert_string_equal(value_of(f.ask.cmd.envp, "PATH"), "/bin");
    assert_string_equal(value_of(f.ask.cmd.envp, "HOME"), "/tmp");
    assert_string_equal(value_of(f.ask.cmd.envp, "_a1"), "=");
    assert_string_equal(value_of(f.ask.cmd.envp, "EMPTY"), "");
    done(&f);
}

static void another_user_has_a_home_of_its_own(void **state)
{
    struct nk_user user = {.name = "alice", .home = "/home/alice", .shell = "/bin/bash"};
    const char *const *envp;
    struct fixture f;

    (void)state;
    assert_int_equal(read_text(&f, "{\"command\":\"x\",\"env\":{\"USER\":\"given\"}}"), 0);
    envp = nk_env_as(f.ask.cmd.envp, base_env, &user, &f.arena);
    assert_non_null(envp);
    assert_string_equal(value_of(envp, "PATH"), "/bin");
    assert_string_equal(value_of(envp, "HOME"), "/home/alice");
    assert_string_equal(value_of(envp, "USER"), "given");
    assert_string_equal(value_of(envp, "LOGNAME"), "alice");
    assert_string_equal(value_of(envp, "SHELL"), "/bin/bash");
    done(&f);
}

/* A document with `count` variables whose values are `len` bytes each. */
static char *env_text(unsigned count, size_t len)
{
    size_t cap = 64 + count * (len + 32);
    char *text = malloc(cap);
    size_t at;

    assert_non_null(text);
    at = (size_t)snprintf(text, cap, "{\"command\":\"x\",\"env\":{");
    for (unsigned i = 0; i < count; i++) {
        at += (size_t)snprintf(text + at, cap - at, "%s\"V%u\":\"", i ? "," : "", i);
        memset(text + at, 'v', len);
        at += len;
        text[at++] = '"';
    }
    (void)snprintf(text + at, cap - at, "}}");
    return text;
}

static void env_has_a_longest_value_and_a_largest_sum(void **state)
{
    char *text = env_text(1, NK_ENV_VALUE_MAX);
    struct fixture f;

    (void)state;
    assert_int_equal(read_text(&f, text), 0);
    done(&f);
    free(text);

    text = env_text(1, NK_ENV_VALUE_MAX + 1);
    refused(text, NK_BAD_REQUEST, "V0");
    free(text);

    text = env_text(9, NK_ENV_VALUE_MAX - 100);
    refused(text, NK_BAD_REQUEST, "env");
    free(text);
}

static void a_copy_of_the_environment_outlives_what_it_was_made_of(void **state)
{
    char home[] = "HOME=/a";
    const char *const from[] = {home, NULL};
    struct nk_arena arena = {0};
    const char *const *copy = nk_env_copy(from, &arena);

    (void)state;
    assert_non_null(copy);
    home[5] = 'x';
    assert_string_equal(copy[0], "HOME=/a");
    assert_null(copy[1]);
    assert_null(nk_env_copy(NULL, &arena)[0]);
    nk_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_string_is_for_the_shell),
        cmocka_unit_test(a_list_is_run_as_it_is),
        cmocka_unit_test(what_is_not_given_has_its_default),
        cmocka_unit_test(what_is_given_is_taken),
        cmocka_unit_test(an_empty_stdin_is_an_input_too),
        cmocka_unit_test(bad_fields_are_refused_by_name),
        cmocka_unit_test(env_is_laid_over_the_base),
        cmocka_unit_test(another_user_has_a_home_of_its_own),
        cmocka_unit_test(env_has_a_longest_value_and_a_largest_sum),
        cmocka_unit_test(a_copy_of_the_environment_outlives_what_it_was_made_of),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
