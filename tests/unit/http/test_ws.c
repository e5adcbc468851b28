#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "http/ws.h"
#include "http/ws_accept.h"

static const uint8_t mask[NK_WS_MASK_SIZE] = {0x37, 0xfa, 0x21, 0x3d};

/* Everything that a reader tells, as text: "text:hello;ping:;close:1000:bye;". */
struct tale {
    char text[8192];
    size_t len;
};

static void tell(struct tale *t, const struct nk_ws_item *item)
{
    static const char *const names[] = {
        [NK_WS_TEXT] = "text", [NK_WS_BINARY] = "binary", [NK_WS_CLOSE] = "close",
        [NK_WS_PING] = "ping", [NK_WS_PONG] = "pong",     [NK_WS_BROKEN] = "broken"};
    int shown = item->len < 64 ? (int)item->len : 64;

    t->len += (size_t)snprintf(t->text + t->len, sizeof t->text - t->len, "%s:", names[item->kind]);
    if (item->code)
        t->len += (size_t)snprintf(t->text + t->len, sizeof t->text - t->len, "%u:", item->code);
    t->len += (size_t)snprintf(t->text + t->len, sizeof t->text - t->len, "%.*s;", shown,
                               (const char *)item->data);
    assert_true(t->len < sizeof t->text);
}

/* Reads `data` in pieces of `step` bytes; each on the heap, so that a read past it is found. */
static void read_in_steps(struct nk_ws *ws, const struct nk_buf *data, size_t step, struct tale *t)
{
    for (size_t at = 0; at < nk_buf_left(data); at += step) {
        size_t n = nk_buf_left(data) - at < step ? nk_buf_left(data) - at : step;
        uint8_t *piece = malloc(n);
        const uint8_t *p = piece;
        struct nk_ws_item item;

        assert_non_null(piece);
        memcpy(piece, nk_buf_front(data) + at, n);
        while (nk_ws_read(ws, &p, &n, &item) != NK_WS_MORE)
            tell(t, &item);
        assert_int_equal(n, 0);
        free(piece);
    }
}

static const struct nk_ws_limits small = {.message_max = 300, .fragments_max = 4};

/* The same tale whatever the cuts. */
static void expect(struct nk_buf *data, bool server, const char *expected)
{
    for (size_t step = 1; step <= nk_buf_left(data); step++) {
        struct nk_ws ws;
        struct tale t = {.len = 0};

        nk_ws_init(&ws, server, &small);
        read_in_steps(&ws, data, step, &t);
        assert_string_equal(t.text, expected);
        nk_ws_fini(&ws);
    }
    for (size_t cut = 1; cut < nk_buf_left(data); cut++) {
        struct nk_buf head = {0}, tail = {0};
        struct nk_ws ws;
        struct tale t = {.len = 0};

        nk_buf_add(&head, nk_buf_front(data), cut);
        nk_buf_add(&tail, nk_buf_front(data) + cut, nk_buf_left(data) - cut);
        nk_ws_init(&ws, server, &small);
        read_in_steps(&ws, &head, cut, &t);
        read_in_steps(&ws, &tail, nk_buf_left(&tail), &t);
        assert_string_equal(t.text, expected);
        nk_ws_fini(&ws);
        nk_buf_fini(&head);
        nk_buf_fini(&tail);
    }
    nk_buf_fini(data);
}

static void expect_bytes(const void *bytes, size_t len, bool server, const char *expected)
{
    struct nk_buf data = {0};

    nk_buf_add(&data, bytes, len);
    expect(&data, server, expected);
}

#define BYTES(text) text, sizeof(text) - 1

/* RFC 6455 section 5.7. */
static void the_examples_of_the_standard_are_read(void **state)
{
    (void)state;
    expect_bytes(BYTES("\x81\x05Hello"), false, "text:Hello;");
    expect_bytes(BYTES("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), true, "text:Hello;");
    expect_bytes(BYTES("\x01\x03Hel\x80\x02lo"), false, "text:Hello;");
    expect_bytes(BYTES("\x89\x05Hello"), false, "ping:Hello;");
    expect_bytes(BYTES("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), true, "pong:Hello;");
}

static void control_frames_stand_inside_of_messages(void **state)
{
    (void)state;
    expect_bytes(BYTES("\x01\x02Gr\x89\x01x\x00\x01\xc3\x8a\x00\x80\x01\xbc"), false,
                 "ping:x;pong:;text:Gr\xc3\xbc;");
    expect_bytes(BYTES("\x02\x01\xff\x88\x02\x03\xe8\x80\x01x"), false, "close:1000:;");
}

static void what_breaks_the_protocol_is_1002(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {
        {BYTES("\xc1\x00")},         /* a reserved bit */
        {BYTES("\x91\x00")},         /* another */
        {BYTES("\x83\x00")},         /* reserved opcodes */
        {BYTES("\x8b\x00")},         /**/
        {BYTES("\x80\x00")},         /* continues nothing */
        {BYTES("\x01\x00\x01\x00")}, /* a message in a message */
        {BYTES("\x09\x00")},         /* a ping in parts */
        {BYTES("\x89\x7e")},         /* a long ping */
        {BYTES("\x88\x01\x03")},     /* half a code */
        {BYTES("\x88\x02\x03\xed")}, /* 1005 */
        {BYTES("\x88\x02\x03\xee")}, /* 1006 */
        {BYTES("\x88\x02\x03\xf7")}, /* 1015 */
        {BYTES("\x88\x02\x07\xd0")}, /* 2000 */
        {BYTES("\x81\x7e\x00\x7d")}, /* a length not in its shortest form */
        {BYTES("\x81\x7f\x00\x00\x00\x00\x00\x00\xff\xff")},
        {BYTES("\x81\x7f\x80\x00\x00\x00\x00\x00\x00\x00")}, /* its first bit is set */
        {BYTES("\x81\x80\x00\x00\x00\x00")},                 /* a server's frame is not masked */
    };

    (void)state;
    for (size_t i = 0; i < NK_COUNT(bad); i++)
        expect_bytes(bad[i].bytes, bad[i].len, false, "broken:1002:;");
    expect_bytes(BYTES("\x81\x00"), true, "broken:1002:;"); /* a client's frame is */
}

static void text_that_is_no_utf8_is_1007_at_its_first_byte(void **state)
{
    (void)state;
    expect_bytes(BYTES("\x01\x01\xff"), false, "broken:1007:;");
    expect_bytes(BYTES("\x01\x04ok\xc0"), false, "broken:1007:;"); /* the frame is not complete */
    expect_bytes(BYTES("\x01\x02\xed\xa0"), false, "broken:1007:;");
    expect_bytes(BYTES("\x01\x03\xf4\x90\x80"), false, "broken:1007:;");
    expect_bytes(BYTES("\x81\x02\xe2\x82"), false, "broken:1007:;");
    expect_bytes(BYTES("\x88\x03\x03\xe8\xff"), false, "broken:1007:;");
    expect_bytes(BYTES("\x82\x02\xff\xfe"), false, "binary:\xff\xfe;");
    expect_bytes(BYTES("\x01\x02\xf0\x9f\x00\x01\x98\x80\x01\x80"), false,
                 "text:\xf0\x9f\x98\x80;");
}

static void what_is_too_large_is_1009_before_it_comes(void **state)
{
    struct nk_buf data = {0};
    char body[300];

    (void)state;
    expect_bytes(BYTES("\x82\x7e\x01\x2d"), false, "broken:1009:;");
    expect_bytes(BYTES("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"), false, "broken:1009:;");
    expect_bytes(BYTES("\x02\x01x\x80\x7e\x01\x2c"), false, "broken:1009:;");
    expect_bytes(BYTES("\x02\x00\x00\x00\x00\x00\x80\x01x"), false, "binary:x;");
    expect_bytes(BYTES("\x02\x00\x00\x00\x00\x00\x00\x00\x80\x01x"), false, "broken:1009:;");
    memset(body, 'x', sizeof body);
    nk_ws_add(&data, NK_WS_BINARY, body, sizeof body, NULL);
    expect(&data, false,
           "binary:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx;");
}

static void limits_count_each_message_for_itself(void **state)
{
    struct nk_buf data = {0};
    char body[200];

    (void)state;
    memset(body, 'y', sizeof body);
    for (int i = 0; i < 5; i++)
        nk_ws_add(&data, NK_WS_TEXT, body, i % 2 ? sizeof body : 1, mask);
    expect(&data, true,
           "text:y;text:yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy;text:y;"
           "text:yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy;text:y;");
}

static void nothing_is_read_after_a_close_or_a_break(void **state)
{
    (void)state;
    expect_bytes(BYTES("\x88\x00\x81\x01x"), false, "close:;");
    expect_bytes(BYTES("\x88\x05\x03\xe9"
                       "bye\x89\x00"),
                 false, "close:1001:bye;");
    expect_bytes(BYTES("\x83\x00\x81\x01x"), false, "broken:1002:;");
}

static void what_is_written_is_read_back(void **state)
{
    static const size_t sizes[] = {0, 1, 125, 126, 127, 65535, 65536, 70000};

    (void)state;
    for (size_t i = 0; i < NK_COUNT(sizes) * 2; i++) {
        size_t size = sizes[i / 2];
        bool masked = i % 2;
        uint8_t *body = malloc(size + 1);
        struct nk_buf data = {0};
        struct nk_ws ws;
        struct nk_ws_item item;
        const uint8_t *p;
        size_t left;

        assert_non_null(body);
        for (size_t k = 0; k < size; k++)
            body[k] = (uint8_t)(k * 31);
        nk_ws_add(&data, NK_WS_BINARY, body, size, masked ? mask : NULL);
        nk_ws_init(&ws, masked, NULL);
        p = nk_buf_front(&data);
        left = nk_buf_left(&data);
        assert_int_equal(nk_ws_read(&ws, &p, &left, &item), NK_WS_BINARY);
        assert_int_equal(item.len, size);
        assert_memory_equal(item.data, body, size);
        assert_int_equal(left, 0);
        nk_ws_fini(&ws);
        nk_buf_fini(&data);
        free(body);
    }
}

static void a_frame_written_in_place_is_the_same(void **state)
{
    static const size_t sizes[] = {0, 125, 126, 65535, 65536};
    static uint8_t body[65536];

    (void)state;
    memset(body, 'z', sizeof body);
    for (size_t i = 0; i < NK_COUNT(sizes); i++) {
        struct nk_buf one = {0}, other = {0};
        size_t at;

        nk_buf_add(&one, "before", 6);
        nk_buf_consume(&one, 3);
        nk_buf_add(&other, "ore", 3);
        nk_ws_add(&other, NK_WS_TEXT, body, sizes[i], NULL);
        at = nk_ws_begin(&one);
        nk_buf_add(&one, body, sizes[i]);
        nk_ws_end(&one, at, NK_WS_TEXT);
        assert_int_equal(nk_buf_left(&one), nk_buf_left(&other));
        assert_memory_equal(nk_buf_front(&one), nk_buf_front(&other), nk_buf_left(&one));
        nk_buf_fini(&one);
        nk_buf_fini(&other);
    }
}

static void a_close_frame_has_a_code_or_nothing(void **state)
{
    char reason[200] = {0};
    struct nk_buf out = {0};

    (void)state;
    nk_ws_add_close(&out, NK_WS_NO_CODE, NULL, NULL);
    assert_int_equal(nk_buf_left(&out), 2);
    nk_buf_consume(&out, 2);
    nk_ws_add_close(&out, NK_WS_NORMAL, "bye", NULL);
    assert_memory_equal(nk_buf_front(&out),
                        "\x88\x05\x03\xe8"
                        "bye",
                        7);
    nk_buf_consume(&out, 7);
    memset(reason, 'r', 122);
    memcpy(reason + 122, "\xc3\xbc", 2);
    nk_ws_add_close(&out, NK_WS_NORMAL, reason, NULL);
    assert_int_equal(nk_buf_left(&out), 2 + 2 + 122); /* not half of the last character */
    nk_buf_fini(&out);
}

static void codes_of_the_wire_are_known(void **state)
{
    static const unsigned good[] = {1000, 1003, 1007, 1011, 1012, 1014, 3000, 4999};
    static const unsigned bad[] = {0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535};

    (void)state;
    for (size_t i = 0; i < NK_COUNT(good); i++)
        assert_true(nk_ws_code_valid(good[i]));
    for (size_t i = 0; i < NK_COUNT(bad); i++)
        assert_false(nk_ws_code_valid(bad[i]));
}

/* RFC 6455 section 1.3. */
static void the_key_is_answered_as_in_the_standard(void **state)
{
    char accept[NK_WS_ACCEPT_ROOM];

    (void)state;
    nk_ws_accept_key("dGhlIHNhbXBsZSBub25jZQ==", accept);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static void a_subprotocol_is_found_in_any_list(void **state)
{
    static const struct {
        const char *list;
        bool found;
    } rows[] = {{"nook.v1", true},  {"a, nook.v1", true}, {"a ,nook.v1 ,b", true},
                {"nook.v1,", true}, {"nook.v10", false},  {"xnook.v1", false},
                {"", false},        {",,", false},        {"NOOK.V1", false},
                {"nook.v1 x", true}};

    (void)state;
    for (size_t i = 0; i < NK_COUNT(rows); i++) {
        char fields[128];
        int n = snprintf(fields, sizeof fields, "sec-websocket-protocol%c%s", '\0', rows[i].list);
        struct nk_head head = {.fields = fields, .field_count = 1};

        assert_true(n > 0);
        assert_int_equal(nk_ws_accept_offers(&head, "nook.v1"), rows[i].found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_standard_are_read),
        cmocka_unit_test(control_frames_stand_inside_of_messages),
        cmocka_unit_test(what_breaks_the_protocol_is_1002),
        cmocka_unit_test(text_that_is_no_utf8_is_1007_at_its_first_byte),
        cmocka_unit_test(what_is_too_large_is_1009_before_it_comes),
        cmocka_unit_test(limits_count_each_message_for_itself),
        cmocka_unit_test(nothing_is_read_after_a_close_or_a_break),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_frame_written_in_place_is_the_same),
        cmocka_unit_test(a_close_frame_has_a_code_or_nothing),
        cmocka_unit_test(codes_of_the_wire_are_known),
        cmocka_unit_test(the_key_is_answered_as_in_the_standard),
        cmocka_unit_test(a_subprotocol_is_found_in_any_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
