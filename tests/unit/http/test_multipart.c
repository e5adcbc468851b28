#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "http/multipart.h"
#include "http/multipart_head.h"

#define TYPE "multipart/form-data; boundary=B"

/* What a body says, as one line: name|filename|bytes; for each part, then END or FAIL. */
static void read_in_pieces(const char *body, size_t body_len, size_t piece, struct nk_buf *out)
{
    struct nk_multipart m;
    enum nk_multipart_event event = NK_MULTIPART_MORE;

    assert_int_equal(nk_multipart_init(&m, TYPE, NULL), 0);
    for (size_t at = 0; at < body_len && event != NK_MULTIPART_FAIL; at += piece) {
        const uint8_t *data = (const uint8_t *)body + at;
        size_t len = body_len - at < piece ? body_len - at : piece;

        do {
            event = nk_multipart_next(&m, &data, &len, NULL);
            if (event == NK_MULTIPART_PART)
                nk_buf_add_fmt(out, "%s|%s|", m.name ? m.name : "-", m.filename ? m.filename : "-");
            if (event == NK_MULTIPART_DATA)
                nk_buf_add(out, m.data, m.len);
            if (event == NK_MULTIPART_PART_END)
                nk_buf_add_str(out, ";");
            if (event == NK_MULTIPART_END)
                nk_buf_add_str(out, "END");
            if (event == NK_MULTIPART_FAIL)
                nk_buf_add_str(out, "FAIL");
        } while (event != NK_MULTIPART_MORE && event != NK_MULTIPART_FAIL);
    }
    nk_buf_add_char(out, '\0');
    nk_multipart_fini(&m);
}

/* However it is cut. */
static void means(const char *body, const char *want)
{
    size_t len = strlen(body);

    for (size_t piece = 1; piece <= len; piece++) {
        struct nk_buf out = {0};

        read_in_pieces(body, len, piece, &out);
        if (strcmp((const char *)nk_buf_front(&out), want) != 0)
            fail_msg("in pieces of %zu: %s", piece, (const char *)nk_buf_front(&out));
        nk_buf_fini(&out);
    }
}

#define HEAD(rest) "Content-Disposition: form-data; " rest "\r\n"

static void parts_are_the_same_however_the_body_is_cut(void **state)
{
    (void)state;
    means("--B\r\n" HEAD("name=a; filename=\"f\"") "\r\none\r\n--B\r\n" HEAD(
              "name=\"b c\"") "\r\ntwo\r\nlines\r\n--B--\r\nepilogue --B\r\n",
          "a|f|one;b c|-|two\r\nlines;END");
    means("a preamble\r\n--Bad\r\n--B \t\r\n\r\nx\r\n--B--", "FAIL");
    means("a preamble\r\n--B \t\r\n\r\nx\r\n--B--", "-|-|x;END");
}

static void what_only_looks_like_a_boundary_is_data(void **state)
{
    (void)state;
    means("--B\r\n\r\n\r\r\n\r\n-\r\n--\r\n--A\n--B\r--B\r\n--B--",
          "-|-|\r\r\n\r\n-\r\n--\r\n--A\n--B\r--B;END");
    means("--B\r\n\r\n--A\r\n--B--", "-|-|--A;END");
}

static void a_part_may_be_empty_in_both_ways_of_writing_it(void **state)
{
    (void)state;
    means("--B\r\n\r\n\r\n--B--", "-|-|;END");
    means("--B\r\nX: y\r\n\r\n--B\r\n\r\n\r\n--B--", "-|-|;-|-|;END");
}

static void what_is_malformed_fails(void **state)
{
    (void)state;
    means("--B\r\nno colon\r\n\r\nx\r\n--B--", "FAIL");
    means("--B\r\n folded: x\r\n\r\nx\r\n--B--", "FAIL");
    means("--B\r\nA: b\n\r\nx\r\n--B--", "FAIL");
    means("--Bx\r\n\r\nx\r\n--B--", "FAIL");
    means("--B-\r\n\r\nx\r\n--B--", "FAIL");
    means("--B\r\n" HEAD("filename=\"open") "\r\nx\r\n--B--", "FAIL");
    means("--B\r\n" HEAD("=x") "\r\nx\r\n--B--", "FAIL");
    means("--B\r\nContent-Disposition: attachment; name=x\r\n\r\nx\r\n--B--", "FAIL");
}

static void the_end_of_the_last_boundary_is_needed(void **state)
{
    (void)state;
    means("--B\r\n\r\nx\r\n--B", "-|-|x;");
    means("--B\r\n\r\nx\r\n--", "-|-|x");
    means("", "");
}

static void headers_of_a_part_are_bounded(void **state)
{
    struct nk_buf body = {0}, out = {0};

    (void)state;
    nk_buf_add_str(&body, "--B\r\nX: ");
    for (int i = 0; i < NK_MULTIPART_HEAD_MAX; i++)
        nk_buf_add_char(&body, 'x');
    nk_buf_add_str(&body, "\r\n\r\nx\r\n--B--");
    read_in_pieces((const char *)nk_buf_front(&body), nk_buf_left(&body), 4096, &out);
    assert_string_equal((const char *)nk_buf_front(&out), "FAIL");
    nk_buf_fini(&body);
    nk_buf_fini(&out);
}

static void filename_is(const char *parameters, const char *want, size_t want_len)
{
    struct nk_multipart_head head;
    char text[256];

    (void)snprintf(text, sizeof text, "Content-Disposition: form-data; %s\r\n", parameters);
    if (nk_multipart_head_parse(text, strlen(text), &head, NULL) < 0) {
        assert_null(want);
        return;
    }
    assert_non_null(want);
    assert_int_equal(head.filename_len, want_len);
    assert_memory_equal(head.filename, want, want_len);
}

static void a_filename_comes_in_many_forms(void **state)
{
    (void)state;
    filename_is("filename=token", "token", 5);
    filename_is("filename=\"a b\"", "a b", 3);
    filename_is("filename=\"q\\\"\\\\\"", "q\"\\", 3);
    filename_is("filename=\"C:\\dir\\f\"", "C:\\dir\\f", 8);
    filename_is("filename=\"%41\"", "%41", 3);
    filename_is("filename=\"x\"; filename*=UTF-8''%e2%82%ac", "\xe2\x82\xac", 3);
    filename_is("filename*=utf-8'en'a%20b; filename=\"x\"", "a b", 3);
    filename_is("filename*=UTF-8''%ff", "\xff", 1);
    filename_is("filename*=UTF-8''%00", NULL, 0);
    filename_is("filename*=UTF-8''%4", NULL, 0);
    filename_is("filename*=latin1''x", NULL, 0);
    filename_is("filename*=x", NULL, 0);
    filename_is("filename=\"a\"x", NULL, 0);
    filename_is("filename", NULL, 0);
}

static void only_a_usable_boundary_is_taken(void **state)
{
    static const char *const bad[] = {
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"ends in a blank \"",
        "multipart/form-data; boundary=\"a\\\"b\"",
        "multipart/form-data; boundary=\xc3\xbc",
        "multipart/form-data; boundary=01234567890123456789012345678901234567890123456789012345678"
        "901234567890",
    };
    struct nk_multipart m;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(nk_multipart_init(&m, bad[i], NULL), -1);
    assert_int_equal(
        nk_multipart_init(&m, "multipart/form-data; charset=x; Boundary=\"a b\"", NULL), 0);
    assert_string_equal(m.mark, "\r\n--a b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_the_same_however_the_body_is_cut),
        cmocka_unit_test(what_only_looks_like_a_boundary_is_data),
        cmocka_unit_test(a_part_may_be_empty_in_both_ways_of_writing_it),
        cmocka_unit_test(what_is_malformed_fails),
        cmocka_unit_test(the_end_of_the_last_boundary_is_needed),
        cmocka_unit_test(headers_of_a_part_are_bounded),
        cmocka_unit_test(a_filename_comes_in_many_forms),
        cmocka_unit_test(only_a_usable_boundary_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
