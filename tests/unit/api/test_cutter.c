/* Cutting a log into events: nothing lost, nothing repeated, no character torn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/cutter.h"
#include "base/utf8.h"

static struct nk_outlog make_log(size_t cap)
{
    struct nk_outlog log;

    nk_outlog_init(&log, cap);
    return log;
}

static void add(struct nk_outlog *log, enum nk_stream stream, const char *text)
{
    nk_outlog_write(log, stream, text, strlen(text));
}

static enum nk_cut next(const struct nk_outlog *log, uint64_t pos, bool flush,
                        struct nk_cutter_piece *out)
{
    return nk_cutter_next(log, pos, log->end, NK_CUTTER_MAX, flush, out);
}

static void expect(const struct nk_cutter_piece *piece, enum nk_stream stream, const char *text,
                   uint64_t from)
{
    assert_int_equal(piece->stream, stream);
    assert_int_equal(piece->len, strlen(text));
    assert_memory_equal(piece->data, text, piece->len);
    assert_int_equal(piece->from, from);
    assert_int_equal(piece->to, from + piece->len);
}

static void an_empty_log_has_nothing(void **state)
{
    struct nk_outlog log = make_log(4096);
    struct nk_cutter_piece piece;

    (void)state;
    assert_int_equal(next(&log, 0, false, &piece), NK_CUT_NOTHING);
    assert_int_equal(next(&log, 0, true, &piece), NK_CUT_NOTHING);
    nk_outlog_fini(&log);
}

static void streams_are_cut_where_they_turn(void **state)
{
    struct nk_outlog log = make_log(4096);
    struct nk_cutter_piece piece;

    (void)state;
    add(&log, NK_STDOUT, "one");
    add(&log, NK_STDERR, "two");
    add(&log, NK_STDOUT, "three");
    assert_int_equal(next(&log, 0, false, &piece), NK_CUT_TEXT);
    expect(&piece, NK_STDOUT, "one", 0);
    assert_int_equal(next(&log, piece.to, false, &piece), NK_CUT_TEXT);
    expect(&piece, NK_STDERR, "two", 3);
    assert_int_equal(next(&log, piece.to, false, &piece), NK_CUT_TEXT);
    expect(&piece, NK_STDOUT, "three", 6);
    assert_int_equal(next(&log, piece.to, false, &piece), NK_CUT_NOTHING);
    nk_outlog_fini(&log);
}

static void half_a_character_is_held_until_it_is_whole(void **state)
{
    struct nk_outlog log = make_log(4096);
    struct nk_cutter_piece piece;

    (void)state;
    add(&log, NK_STDOUT, "a\xe2\x82");
    assert_int_equal(next(&log, 0, false, &piece), NK_CUT_TEXT);
    expect(&piece, NK_STDOUT, "a", 0);
    assert_int_equal(next(&log, 1, false, &piece), NK_CUT_HELD);
    add(&log, NK_STDOUT, "\xac!");
    assert_int_equal(next(&log, 1, false, &piece), NK_CUT_TEXT);
    expect(&piece, NK_STDOUT, "\xe2\x82\xac!", 1);
    nk_outlog_fini(&log);
}

static void held_bytes_go_out_when_they_can_never_be_whole(void **state)
{
    struct nk_outlog log = make_log(4096);
    struct nk_cutter_piece piece;

    (void)state;
    add(&log, NK_STDOUT, "\xe2\x82");
    assert_int_equal(next(&log, 0, false, &piece), NK_CUT_HELD);
    add(&log, NK_STDOUT, "x");
    assert_int_equal(next(&log, 0, false, &piece), NK_CUT_BYTES);
    expect(&piece, NK_STDOUT, "\xe2\x82x", 0);
    nk_outlog_fini(&log);
}

static void held_bytes_go_out_before_those_of_the_other_stream(void **state)
{
    struct nk_outlog log = make_log(4096);
    struct nk_cutter_piece piece;

    (void)state;
    add(&log, NK_STDOUT, "\xe2\x82");
    add(&log, NK_STDERR, "e");
    add(&log, NK_STDOUT, "\xac");
    assert_int_equal(next(&log, 0, false, &piece), NK_CUT_BYTES);
    expect(&piece, NK_STDOUT, "\xe2\x82", 0);
    assert_int_equal(next(&log, 2, false, &piece), NK_CUT_TEXT);
    expect(&piece, NK_STDERR, "e", 2);
    assert_int_equal(next(&log, 3, false, &piece), NK_CUT_BYTES);
    expect(&piece, NK_STDOUT, "\xac", 3);
    nk_outlog_fini(&log);
}

static void held_bytes_go_out_when_waiting_is_over(void **state)
{
    struct nk_outlog log = make_log(4096);
    struct nk_cutter_piece piece;

    (void)state;
    add(&log, NK_STDERR, "\xf0\x9f\x98");
    assert_int_equal(next(&log, 0, false, &piece), NK_CUT_HELD);
    assert_int_equal(next(&log, 0, true, &piece), NK_CUT_BYTES);
    expect(&piece, NK_STDERR, "\xf0\x9f\x98", 0);
    nk_outlog_fini(&log);
}

static void bytes_that_are_no_text_stay_together(void **state)
{
    struct nk_outlog log = make_log(4096);
    struct nk_cutter_piece piece;

    (void)state;
    add(&log, NK_STDOUT, "text\xff\xfemore\xe2\x82");
    assert_int_equal(next(&log, 0, false, &piece), NK_CUT_BYTES);
    expect(&piece, NK_STDOUT, "text\xff\xfemore", 0);
    assert_int_equal(next(&log, piece.to, false, &piece), NK_CUT_HELD);
    nk_outlog_fini(&log);
}

static void nothing_at_or_after_the_end_goes_out(void **state)
{
    struct nk_outlog log = make_log(4096);
    struct nk_cutter_piece piece;

    (void)state;
    add(&log, NK_STDOUT, "ab\xe2\x82\xac");
    assert_int_equal(nk_cutter_next(&log, 0, 4, NK_CUTTER_MAX, true, &piece), NK_CUT_TEXT);
    expect(&piece, NK_STDOUT, "ab", 0);
    assert_int_equal(nk_cutter_next(&log, 2, 4, NK_CUTTER_MAX, true, &piece), NK_CUT_BYTES);
    expect(&piece, NK_STDOUT, "\xe2\x82", 2);
    assert_int_equal(nk_cutter_next(&log, 4, 4, NK_CUTTER_MAX, true, &piece), NK_CUT_NOTHING);
    nk_outlog_fini(&log);
}

static void forgotten_bytes_are_a_gap(void **state)
{
    struct nk_outlog log = make_log(4096);
    struct nk_cutter_piece piece;
    char block[1000];

    (void)state;
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 10; i++)
        nk_outlog_write(&log, NK_STDOUT, block, sizeof block);
    assert_true(log.start > 0);
    assert_int_equal(next(&log, 0, false, &piece), NK_CUT_GAP);
    assert_int_equal(piece.from, 0);
    assert_int_equal(piece.to, log.start);
    assert_int_equal(next(&log, piece.to, false, &piece), NK_CUT_TEXT);
    assert_int_equal(piece.from, log.start);
    nk_outlog_fini(&log);
}

static void a_dropped_log_is_one_gap_to_its_end(void **state)
{
    struct nk_outlog log = make_log(4096);
    struct nk_cutter_piece piece;

    (void)state;
    add(&log, NK_STDOUT, "hello");
    nk_outlog_drop(&log);
    assert_int_equal(next(&log, 2, false, &piece), NK_CUT_GAP);
    assert_int_equal(piece.from, 2);
    assert_int_equal(piece.to, 5);
    nk_outlog_fini(&log);
}

/* Reads all there is from `pos`, checking every piece; returns the new position. */
static uint64_t drain(const struct nk_outlog *log, uint64_t pos, bool flush, const uint8_t *whole,
                      size_t max)
{
    for (;;) {
        struct nk_cutter_piece piece;
        enum nk_cut kind = nk_cutter_next(log, pos, log->end, max, flush, &piece);

        if (kind != NK_CUT_TEXT && kind != NK_CUT_BYTES) {
            assert_true(kind == NK_CUT_NOTHING || (kind == NK_CUT_HELD && !flush));
            return pos;
        }
        assert_true(piece.len > 0 && piece.len <= max);
        assert_int_equal(piece.from, pos);
        assert_memory_equal(piece.data, whole + pos, piece.len);
        if (kind == NK_CUT_TEXT)
            assert_true(nk_utf8_valid(piece.data, piece.len));
        pos = piece.to;
    }
}

static unsigned draw(unsigned *seed, unsigned n)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % n;
}

/* A ring far smaller than what passes through it, so that characters lie across its seam; text
 * alone, so that every piece but those at the turns must be text. */
static void every_byte_comes_once_and_in_order(void **state)
{
    static const char *const words[] = {"a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\n"};
    static uint8_t whole[200000];
    struct nk_outlog log = make_log(4096);
    uint64_t pos = 0;
    size_t len = 0, written = 0;
    unsigned seed = 7;

    (void)state;
    while (len < sizeof whole - 4) {
        const char *word = words[draw(&seed, 5)];

        memcpy(whole + len, word, strlen(word));
        len += strlen(word);
    }
    while (written < len) {
        size_t n = 1 + draw(&seed, 700);

        if (n > len - written)
            n = len - written;
        nk_outlog_write(&log, NK_STDOUT, whole + written, n);
        written += n;
        pos = drain(&log, pos, false, whole, 4 + draw(&seed, 300));
        assert_true(written - pos < NK_CUTTER_MIN);
    }
    assert_int_equal(drain(&log, pos, true, whole, NK_CUTTER_MAX), len);
    nk_outlog_fini(&log);
}

static void any_bytes_come_through_unchanged(void **state)
{
    static uint8_t whole[100000];
    struct nk_outlog log = make_log(4096);
    uint64_t pos = 0;
    size_t written = 0;
    unsigned seed = 11;

    (void)state;
    for (size_t i = 0; i < sizeof whole; i++)
        whole[i] = (uint8_t)(draw(&seed, 3) ? 0x80 + draw(&seed, 0x80) : draw(&seed, 0x80));
    while (written < sizeof whole) {
        size_t n = 1 + draw(&seed, 50);

        if (n > sizeof whole - written)
            n = sizeof whole - written;
        nk_outlog_write(&log, draw(&seed, 2) ? NK_STDOUT : NK_STDERR, whole + written, n);
        written += n;
        pos = drain(&log, pos, draw(&seed, 2), whole, 4 + draw(&seed, 60));
    }
    assert_int_equal(drain(&log, pos, true, whole, NK_CUTTER_MAX), sizeof whole);
    nk_outlog_fini(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_log_has_nothing),
        cmocka_unit_test(streams_are_cut_where_they_turn),
        cmocka_unit_test(half_a_character_is_held_until_it_is_whole),
        cmocka_unit_test(held_bytes_go_out_when_they_can_never_be_whole),
        cmocka_unit_test(held_bytes_go_out_before_those_of_the_other_stream),
        cmocka_unit_test(held_bytes_go_out_when_waiting_is_over),
        cmocka_unit_test(bytes_that_are_no_text_stay_together),
        cmocka_unit_test(nothing_at_or_after_the_end_goes_out),
        cmocka_unit_test(forgotten_bytes_are_a_gap),
        cmocka_unit_test(a_dropped_log_is_one_gap_to_its_end),
        cmocka_unit_test(every_byte_comes_once_and_in_order),
        cmocka_unit_test(any_bytes_come_through_unchanged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
