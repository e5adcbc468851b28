#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/attr.h"
#include "base/base64.h"
#include "base/buf.h"

static void the_vectors_of_the_rfc_hold(void **state)
{
    static const char *const pairs[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };

    (void)state;
    for (size_t i = 0; i < NK_COUNT(pairs); i++) {
        struct nk_buf out = {0};
        uint8_t back[16];
        size_t len = 99;

        nk_base64_encode(&out, pairs[i][0], strlen(pairs[i][0]));
        assert_int_equal(nk_buf_left(&out), strlen(pairs[i][1]));
        if (nk_buf_left(&out) > 0)
            assert_memory_equal(nk_buf_front(&out), pairs[i][1], strlen(pairs[i][1]));
        assert_int_equal(nk_base64_decode(pairs[i][1], strlen(pairs[i][1]), back, &len), 0);
        assert_int_equal(len, strlen(pairs[i][0]));
        assert_memory_equal(back, pairs[i][0], len);
        nk_buf_fini(&out);
    }
}

static void every_letter_is_in_its_place(void **state)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t bytes[48];
    struct nk_buf out = {0};

    (void)state;
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t v = 4 * i << 18 | (4 * i + 1) << 12 | (4 * i + 2) << 6 | (4 * i + 3);

        bytes[3 * i] = (uint8_t)(v >> 16);
        bytes[3 * i + 1] = (uint8_t)(v >> 8);
        bytes[3 * i + 2] = (uint8_t)v;
    }
    nk_base64_encode(&out, bytes, sizeof bytes);
    assert_int_equal(nk_buf_left(&out), 64);
    assert_memory_equal(nk_buf_front(&out), letters, 64);
    nk_buf_fini(&out);
}

static void what_was_encoded_comes_back_at_every_length(void **state)
{
    static uint8_t data[100003], back[100006];
    uint32_t seed = 1;

    (void)state;
    for (size_t i = 0; i < sizeof data; i++) {
        seed = seed * 1664525 + 1013904223;
        data[i] = (uint8_t)(seed >> 24);
    }
    for (size_t n = 0; n <= sizeof data; n += n < 200 ? 1 : 33267) {
        struct nk_buf out = {0};
        size_t len = 0;

        nk_base64_encode(&out, data, n);
        assert_int_equal(nk_buf_left(&out), (n + 2) / 3 * 4);
        assert_int_equal(
            nk_base64_decode((const char *)nk_buf_front(&out), nk_buf_left(&out), back, &len), 0);
        assert_int_equal(len, n);
        assert_memory_equal(back, data, n);
        nk_buf_fini(&out);
    }
}

static void loose_texts_are_refused(void **state)
{
    static const char *const bad[] = {
        "A",       "AA",    "AAA",      "AAAAA",    "====",     "A===",       "=AAA", "AA=A",
        "AAA ",    "AA\n=", "Zg==Zg==", "Zm8=Zm8=", "Zh==",     "Zm9=",       "Zm-v", "Zm_v",
        "Zm9\x80", "    ",  "Zm9v\n",   "AAAA====", "AA==AAAA", "\303\244AA",
    };
    uint8_t out[32];
    size_t len = 77;

    (void)state;
    for (size_t i = 0; i < NK_COUNT(bad); i++) {
        assert_int_equal(nk_base64_decode(bad[i], strlen(bad[i]), out, &len), -EINVAL);
        assert_int_equal(len, 77);
    }
    assert_int_equal(nk_base64_decode("AA\0A", 4, out, &len), -EINVAL);
}

static void a_full_buffer_says_so(void **state)
{
    struct nk_buf out = {.max = 7};

    (void)state;
    nk_base64_encode(&out, "foobar", 6);
    assert_true(out.failed);
    nk_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_the_rfc_hold),
        cmocka_unit_test(every_letter_is_in_its_place),
        cmocka_unit_test(what_was_encoded_comes_back_at_every_length),
        cmocka_unit_test(loose_texts_are_refused),
        cmocka_unit_test(a_full_buffer_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
