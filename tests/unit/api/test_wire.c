/* The JSON shapes, and the reading of a command's request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/wire.h"
#include "fake_req.h"
#include "process/process.h"

static char *text_of(struct nk_buf *buf)
{
    nk_buf_add_char(buf, '\0');
    assert_false(buf->failed);
    return (char *)buf->data;
}

static struct nk_process make_process(void)
{
    static char *argv[] = {(char *)"echo", (char *)"hi", NULL};

    return (struct nk_process){
        .id = "abc",
        .argv = argv,
        .cwd = (char *)"/workspace",
        .user = "sandbox",
        .pid = 42,
        .state = NK_PROC_EXITED,
        .reaped = true,
        .over = true,
        .wait_status = 3 << 8,
        .started_wall_ms = 1000,
        .ended_wall_ms = 2500,
        .started_ns = 5000000,
        .ended_ns = 12000000,
        .sizes = {0, 3, 1},
        .end_offset = 4,
    };
}

static void a_result_has_every_field_of_the_contract(void **state)
{
    struct nk_process p = make_process();
    struct nk_capture captures[2];
    struct nk_buf buf = {0};
    struct nk_json_out o = {.buf = &buf};

    (void)state;
    nk_capture_init(&captures[0], 100);
    nk_capture_init(&captures[1], 100);
    nk_capture_write(&captures[0], "hi\n", 3);
    nk_capture_write(&captures[1], "\xff", 1);
    p.captures = captures;
    nk_json_out_open(&o, NULL, '{');
    nk_wire_result(&o, &p, true);
    nk_json_out_close(&o, '}');
    assert_string_equal(
        text_of(&buf),
        "{\"id\":\"abc\",\"exit_code\":3,\"signal\":null,\"timed_out\":false,\"killed\":false,"
        "\"reason\":\"exited\",\"stdout\":\"hi\\n\",\"stderr\":\"\xef\xbf\xbd\","
        "\"stderr_base64\":\"/w==\",\"stdout_size\":3,\"stderr_size\":1,"
        "\"stdout_truncated\":false,\"stderr_truncated\":false,\"duration_ms\":7,\"files\":[]}");
    nk_buf_fini(&buf);
    nk_capture_fini(&captures[0]);
    nk_capture_fini(&captures[1]);
}

static void a_lost_beginning_is_told(void **state)
{
    struct nk_process p = make_process();
    struct nk_capture captures[2];
    struct nk_buf buf = {0};
    struct nk_json_out o = {.buf = &buf};

    (void)state;
    nk_capture_init(&captures[0], 2);
    nk_capture_init(&captures[1], 2);
    nk_capture_write(&captures[0], "abc", 3);
    p.captures = captures;
    nk_json_out_open(&o, NULL, '{');
    nk_wire_result(&o, &p, true);
    nk_json_out_close(&o, '}');
    assert_non_null(strstr(text_of(&buf), "\"stdout\":\"bc\""));
    assert_non_null(strstr((char *)buf.data, "\"stdout_truncated\":true"));
    assert_non_null(strstr((char *)buf.data, "\"stderr_truncated\":false"));
    nk_buf_fini(&buf);
    nk_capture_fini(&captures[0]);
    nk_capture_fini(&captures[1]);
}

static void death_by_a_signal_is_named(void **state)
{
    struct nk_process p = make_process();
    struct nk_buf buf = {0};
    struct nk_json_out o = {.buf = &buf};

    (void)state;
    p.wait_status = 15;
    p.reason = NK_REASON_SIGNALED;
    nk_json_out_open(&o, NULL, '{');
    nk_wire_result(&o, &p, false);
    nk_json_out_close(&o, '}');
    assert_non_null(strstr(text_of(&buf), "\"exit_code\":143,\"signal\":\"TERM\""));
    assert_non_null(strstr((char *)buf.data, "\"reason\":\"signaled\""));
    assert_null(strstr((char *)buf.data, "\"stdout\":"));
    nk_buf_fini(&buf);
}

static void a_running_process_has_no_end_yet(void **state)
{
    struct nk_process p = make_process();
    uint16_t ports[] = {80, 8080};
    struct nk_buf buf = {0};
    struct nk_json_out o = {.buf = &buf};

    (void)state;
    p.state = NK_PROC_RUNNING;
    p.reaped = false;
    p.ended_wall_ms = 0;
    nk_json_out_open(&o, NULL, '{');
    nk_wire_process(&o, &p, ports, 2);
    nk_json_out_close(&o, '}');
    assert_string_equal(
        text_of(&buf),
        "{\"id\":\"abc\",\"name\":null,\"command\":[\"echo\",\"hi\"],\"pid\":42,"
        "\"status\":\"running\",\"tree\":false,\"exit_code\":null,\"signal\":null,"
        "\"timed_out\":false,\"killed\":false,\"reason\":null,"
        "\"started_at\":\"1970-01-01T00:00:01.000Z\",\"ended_at\":null,\"cwd\":\"/workspace\","
        "\"user\":\"sandbox\",\"tty\":false,\"stdout_size\":3,\"stderr_size\":1,\"log_start\":0,"
        "\"log_end\":0,\"ports\":[80,8080]}");
    nk_buf_fini(&buf);
}

static void a_shell_command_is_shown_as_it_was_given(void **state)
{
    static char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)"echo \"hi\"", NULL};
    struct nk_process p = make_process();
    struct nk_buf buf = {0};
    struct nk_json_out o = {.buf = &buf};

    (void)state;
    p.argv = argv;
    p.shell = true;
    nk_json_out_open(&o, NULL, '{');
    nk_wire_process(&o, &p, NULL, 0);
    nk_json_out_close(&o, '}');
    assert_non_null(strstr(text_of(&buf), "\"command\":\"echo \\\"hi\\\"\","));
    nk_buf_fini(&buf);
}

static void events_have_a_name_an_offset_and_one_line_of_data(void **state)
{
    struct nk_process p = make_process();
    struct nk_cutter_piece piece = {
        .stream = NK_STDERR, .data = (const uint8_t *)"a\nb", .len = 3, .from = 5, .to = 8};
    struct nk_buf buf = {0};

    (void)state;
    nk_wire_sse_started(&buf, &p, 0);
    nk_wire_sse_output(&buf, NK_CUT_TEXT, &piece);
    nk_wire_sse_output(&buf, NK_CUT_BYTES, &piece);
    assert_string_equal(text_of(&buf),
                        "event: started\nid: 0\ndata: {\"id\":\"abc\",\"pid\":42,\"offset\":0}\n\n"
                        "event: stderr\nid: 8\ndata: {\"text\":\"a\\nb\"}\n\n"
                        "event: stderr\nid: 8\ndata: {\"base64\":\"YQpi\"}\n\n");
    nk_buf_fini(&buf);
}

static void closing_events_carry_the_result_or_the_error(void **state)
{
    struct nk_process p = make_process();
    struct nk_buf buf = {0};
    struct nk_err err;

    (void)state;
    nk_wire_sse_exit(&buf, &p);
    assert_string_equal(
        text_of(&buf),
        "event: exit\nid: 4\ndata: {\"id\":\"abc\",\"exit_code\":3,\"signal\":null,"
        "\"timed_out\":false,\"killed\":false,\"reason\":\"exited\",\"stdout_size\":3,"
        "\"stderr_size\":1,\"stdout_truncated\":false,\"stderr_truncated\":false,"
        "\"duration_ms\":7,\"files\":[]}\n\n");
    nk_buf_fini(&buf);

    (void)nk_fail(&err, NK_INTERNAL, "broken");
    nk_wire_sse_error(&buf, 4, &err);
    assert_string_equal(text_of(&buf), "event: error\nid: 4\ndata: {\"code\":\"internal\","
                                       "\"message\":\"broken\"}\n\n");
    nk_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_has_every_field_of_the_contract),
        cmocka_unit_test(a_lost_beginning_is_told),
        cmocka_unit_test(death_by_a_signal_is_named),
        cmocka_unit_test(a_running_process_has_no_end_yet),
        cmocka_unit_test(a_shell_command_is_shown_as_it_was_given),
        cmocka_unit_test(events_have_a_name_an_offset_and_one_line_of_data),
        cmocka_unit_test(closing_events_carry_the_result_or_the_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
