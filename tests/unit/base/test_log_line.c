#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/json.h"
#include "base/log_line.h"

static const char *finish(struct nk_log_line *l, uint64_t dropped)
{
    nk_log_line_end(l, dropped);
    assert_in_range(l->len, 1, sizeof l->text - 1);
    assert_int_equal(l->text[l->len - 1], '\n');
    l->text[l->len] = '\0';
    return l->text;
}

static void a_record_in_json(void **state)
{
    struct nk_log_line l;
    struct nk_log_field fields[] = {{.key = "path", .str = "/x"}, {.key = "ms", .num = -7}};

    (void)state;
    nk_log_line_begin(&l, true, NK_LOG_WARN, 1);
    nk_log_line_head(&l, "request", "a \"word\"");
    nk_log_line_field(&l, &fields[0]);
    nk_log_line_field(&l, &fields[1]);
    assert_string_equal(finish(&l, 3),
                        "{\"time\":\"1970-01-01T00:00:00.001Z\",\"level\":\"warn\",\"event\":"
                        "\"request\",\"msg\":\"a \\\"word\\\"\",\"path\":\"/x\",\"ms\":-7,"
                        "\"dropped\":3}\n");
}

static void a_record_in_text(void **state)
{
    struct nk_log_line l;
    struct nk_log_field fields[] = {{.key = "path", .str = "/x y"}, {.key = "ms", .num = 7}};

    (void)state;
    nk_log_line_begin(&l, false, NK_LOG_ERROR, 0);
    nk_log_line_head(&l, "start", "ready");
    nk_log_line_field(&l, &fields[0]);
    nk_log_line_field(&l, &fields[1]);
    assert_string_equal(finish(&l, 0),
                        "1970-01-01T00:00:00.000Z error start: ready path=\"/x y\" ms=7\n");
}

/* Every byte, alone, as the start of two, and in front of a continuation. */
static void no_byte_can_steer_a_terminal(void **state)
{
    (void)state;
    for (int json = 0; json < 2; json++) {
        for (int c = 1; c < 256; c++) {
            const char value[] = {'a', (char)c, (char)0x85, 'b', (char)0xc2, (char)c, 0};
            struct nk_log_field field = {.key = "k", .str = value};
            struct nk_log_line l;
            const char *text;

            nk_log_line_begin(&l, json, NK_LOG_INFO, 0);
            nk_log_line_head(&l, "e", value);
            nk_log_line_field(&l, &field);
            text = finish(&l, 0);
            for (size_t i = 0; i + 1 < l.len; i++) {
                assert_in_range((unsigned char)text[i], 0x20, 0xff);
                assert_int_not_equal(text[i], 0x7f);
                if ((unsigned char)text[i] == 0xc2)
                    assert_in_range((unsigned char)text[i + 1], 0xa0, 0xbf);
            }
        }
    }
}

static void json_lines_are_strict_json_whatever_they_carry(void **state)
{
    (void)state;
    for (int c = 1; c < 256; c++) {
        const char value[] = {(char)c, '"', (char)c, (char)0x80, '\\', 0};
        struct nk_log_field field = {.key = "k", .str = value};
        struct nk_log_line l;
        struct nk_json *root;
        struct nk_err err;

        nk_log_line_begin(&l, true, NK_LOG_DEBUG, 0);
        nk_log_line_head(&l, "e", NULL);
        nk_log_line_field(&l, &field);
        (void)finish(&l, UINT64_MAX / 2);
        if (nk_json_parse(l.text, l.len, &root, &err) < 0)
            fail_msg("%02x: %s", (unsigned)c, err.msg);
        nk_json_free(root);
    }
}

static void what_is_too_long_is_cut_and_said_so(void **state)
{
    char value[2001];
    struct nk_log_field field = {.key = "k", .str = value};
    struct nk_log_field small = {.key = "small", .num = 1};
    struct nk_log_line l;
    struct nk_json *root;
    struct nk_err err;

    (void)state;
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = i % 2 ? '\x01' : '"';
    value[sizeof value - 1] = '\0';
    for (size_t n = 0; n < 20; n++) {
        nk_log_line_begin(&l, true, NK_LOG_INFO, 0);
        nk_log_line_head(&l, "e", NULL);
        for (size_t i = 0; i < n; i++) {
            char key[8] = {'k', (char)('a' + i), 0};

            field.key = key;
            nk_log_line_field(&l, &field);
        }
        nk_log_line_field(&l, &small);
        (void)finish(&l, n);
        if (nk_json_parse(l.text, l.len, &root, &err) < 0)
            fail_msg("%zu: %s", n, err.msg);
        assert_int_equal(nk_json_get(root, "cut") != NULL, n > 0);
        assert_int_equal(nk_json_get(root, "dropped") != NULL, n > 0);
        nk_json_free(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_in_json),
        cmocka_unit_test(a_record_in_text),
        cmocka_unit_test(no_byte_can_steer_a_terminal),
        cmocka_unit_test(json_lines_are_strict_json_whatever_they_carry),
        cmocka_unit_test(what_is_too_long_is_cut_and_said_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
