#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "files/archive_note.h"
#include "files/tar_note.h"
#include "files/tar_order.h"

static void add_note(struct nk_buf *out, const char *state, const char *message)
{
    size_t begun = nk_tar_note_begin(out);

    nk_tar_note_add(out, "state", state);
    if (message) {
        nk_tar_note_add_u64(out, "code", NK_NO_SPACE);
        nk_tar_note_add(out, "message", message);
    }
    nk_tar_note_end(out, begun);
}

static void a_note_is_read_when_all_of_it_is_there(void **state)
{
    struct nk_buf whole = {0};
    struct nk_buf in = {0};
    struct nk_archive_note note = {0};

    (void)state;
    add_note(&whole, "ready", NULL);
    add_note(&whole, "failed", "the disk is full");
    for (size_t i = 0; i < nk_buf_left(&whole); i++) {
        enum nk_archive_said said = nk_archive_note_take(&in, &note);

        assert_true(said == NK_ARCHIVE_SAID_NOTHING || said == NK_ARCHIVE_SAID_READY);
        nk_buf_add(&in, nk_buf_front(&whole) + i, 1);
    }
    assert_int_equal(nk_archive_note_take(&in, &note), NK_ARCHIVE_SAID_END);
    assert_int_equal(note.err.code, NK_NO_SPACE);
    assert_string_equal(note.err.msg, "the disk is full");
    assert_int_equal(nk_buf_left(&in), 0);
    nk_archive_note_fini(&note);
    nk_buf_fini(&in);
    nk_buf_fini(&whole);
}

static void nonsense_is_told_apart(void **state)
{
    static const struct {
        const char *text;
        size_t len;
    } bad[] = {
        {"0000000gstate=x", 15}, {"ffffffffstate=x", 15},      {"00000004abcd", 12},
        {"00000000", 8},         {"0000000bstate=xxxx\0", 19}, {"==12345==ERROR", 14},
    };

    (void)state;
    for (size_t i = 0; i < NK_COUNT(bad); i++) {
        struct nk_buf in = {0};
        struct nk_archive_note note = {0};

        nk_buf_add(&in, bad[i].text, bad[i].len);
        assert_int_equal(nk_archive_note_take(&in, &note), NK_ARCHIVE_SAID_NONSENSE);
        nk_archive_note_fini(&note);
        nk_buf_fini(&in);
    }
}

static void a_code_that_a_worker_may_not_use_is_internal(void **state)
{
    static const uint64_t codes[] = {0, NK_UNAUTHORIZED, NK_CODE_COUNT, UINT64_MAX};

    (void)state;
    for (size_t i = 0; i < NK_COUNT(codes); i++) {
        struct nk_buf in = {0};
        struct nk_archive_note note = {0};
        size_t begun = nk_tar_note_begin(&in);

        nk_tar_note_add(&in, "state", "failed");
        nk_tar_note_add_u64(&in, "code", codes[i]);
        nk_tar_note_end(&in, begun);
        assert_int_equal(nk_archive_note_take(&in, &note), NK_ARCHIVE_SAID_END);
        assert_int_equal(note.err.code, NK_INTERNAL);
        nk_buf_fini(&in);
    }
}

static void a_result_comes_through_with_its_odd_names(void **state)
{
    struct nk_tar_result sent = {.files = 3, .dirs = 1, .links = 2, .bytes = UINT64_C(1) << 40};
    struct nk_archive_note got = {0};
    struct nk_buf in = {0};
    size_t begun;

    (void)state;
    for (int i = 0; i < NK_TAR_RESULT_SHOWN + 5; i++)
        nk_tar_result_refuse(&sent, i ? "\xff=\n\x1b" : "", "a reason");
    begun = nk_tar_note_begin(&in);
    nk_tar_note_add(&in, "state", "done");
    nk_tar_result_write(&sent, &in);
    nk_tar_note_end(&in, begun);
    assert_int_equal(nk_archive_note_take(&in, &got), NK_ARCHIVE_SAID_END);
    assert_int_equal(got.err.code, NK_OK);
    assert_int_equal(got.result.bytes, UINT64_C(1) << 40);
    assert_int_equal(got.result.files + got.result.dirs + got.result.links, 6);
    assert_int_equal(got.result.refused_count, NK_TAR_RESULT_SHOWN + 5);
    assert_int_equal(got.result.shown, NK_TAR_RESULT_SHOWN);
    assert_string_equal(got.result.refused[0].path, "");
    assert_string_equal(got.result.refused[99].path, "\xff=\n\x1b");
    assert_string_equal(got.result.refused[99].reason, "a reason");
    nk_tar_result_fini(&sent);
    nk_archive_note_fini(&got);
    nk_buf_fini(&in);
}

static void an_order_arrives_as_it_was_given(void **state)
{
    static const char *const roots[] = {"/workspace", "/tmp", NULL};
    static const char *const paths[] = {"a=b", "\xff\n", "", NULL};
    const struct nk_tar_order sent = {.pack = true,
                                      .openat2 = true,
                                      .writable = roots,
                                      .paths = paths,
                                      .base = "base",
                                      .format = NK_TAR_ZSTD,
                                      .skip_links = true};
    struct nk_tar_order got;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(nk_tar_order_send(ends[1], &sent), 0);
    assert_int_equal(write(ends[1], "data", 4), 4);
    assert_int_equal(nk_tar_order_read(ends[0], &got, NULL), 0);
    assert_true(got.pack && got.openat2 && got.skip_links && !got.strict);
    assert_int_equal(got.format, NK_TAR_ZSTD);
    assert_string_equal(got.base, "base");
    for (int i = 0; roots[i]; i++)
        assert_string_equal(got.writable[i], roots[i]);
    for (int i = 0; paths[i]; i++)
        assert_string_equal(got.paths[i], paths[i]);
    assert_null(got.writable[2]);
    assert_null(got.readable[0]);
    assert_null(got.paths[3]);
    nk_tar_order_fini(&got);
    close(ends[1]);
    assert_int_equal(nk_tar_order_read(ends[0], &got, NULL), -1);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_note_is_read_when_all_of_it_is_there),
        cmocka_unit_test(nonsense_is_told_apart),
        cmocka_unit_test(a_code_that_a_worker_may_not_use_is_internal),
        cmocka_unit_test(a_result_comes_through_with_its_odd_names),
        cmocka_unit_test(an_order_arrives_as_it_was_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
