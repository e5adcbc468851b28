#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/sha1.h"

static void assert_digest(const void *data, size_t len, const char *expected)
{
    uint8_t digest[NK_SHA1_SIZE];
    char text[2 * NK_SHA1_SIZE + 1];

    nk_sha1(data, len, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, expected);
}

static void the_vectors_of_the_standard_are_met(void **state)
{
    (void)state;
    assert_digest("", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    assert_digest("abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
    assert_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                  "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
}

static void a_million_letters_are_many_blocks(void **state)
{
    static char letters[1000000];

    (void)state;
    memset(letters, 'a', sizeof letters);
    assert_digest(letters, sizeof letters, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

/* 55 bytes fit beside the length, 56 do not, 64 are a block of their own. */
static void lengths_around_a_block_end_right(void **state)
{
    static const char text[] = "0123456789012345678901234567890123456789"
                               "0123456789012345678901234567890123456789";

    (void)state;
    assert_digest(text, 55, "9f3a4ce7f66b1b74c34da2c5d732c39f81e0f8df");
    assert_digest(text, 56, "0a40b8fbdaafb7c29651618ac15d27e772287130");
    assert_digest(text, 63, "984b0f2f6d78c24020f5a79d409f67ab99302891");
    assert_digest(text, 64, "cf0800f7644ace3cb4c3fa33388d3ba0ea3c8b6e");
    assert_digest(text, 65, "92de3a8444fe6d15268f0ba810aa43bc8b3a4ffe");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_the_standard_are_met),
        cmocka_unit_test(a_million_letters_are_many_blocks),
        cmocka_unit_test(lengths_around_a_block_end_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
